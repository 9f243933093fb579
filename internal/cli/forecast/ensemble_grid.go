package forecast

import (
	"cmp"
	"runtime"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A Cell is the result for one budget and one deadline.
type Cell struct {
	Budget    cost.Amount    `json:"budget"`
	Deadline  corral.Seconds `json:"deadline_s"`
	Completed ensemble.Score `json:"completed"` // 1 or 0 for each workflow, by priority
	Count     int            `json:"count"`     // number of completed workflows
	Cost      cost.Amount    `json:"cost"`
	Makespan  corral.Seconds `json:"makespan_s"`
}

// PlayGrid simulates an ensemble with points budgets and points deadlines, at least two of each. They are evenly spaced
// from the minimum with which one workflow can be completed to the requested maximum or, by default, to the value with
// which nearly all workflows can be completed (ensemble.Bounds). It returns the cells by deadline, then by budget.
// Errors are the same as those of PlayEnsemble.
func PlayGrid(e ensemble.Ensemble, in EnsembleRequest, points int) ([]Cell, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	terms, err := in.terms()
	if err != nil {
		return nil, err
	}
	b := e.Bounds(terms)
	top := in
	if top.Budget.Unit == "" {
		top.Budget = terms.Amount(max(b.MostBudget, terms.Price))
	}
	top.Deadline = cmp.Or(top.Deadline, corral.Seconds(b.MostDeadline))
	if err := top.check(terms.Unit); err != nil {
		return nil, err
	}
	budgets := between(min(max(b.LeastBudget, terms.Price), top.Budget.Money), top.Budget.Money, points)
	deadlines := between(min(b.LeastDeadline, time.Duration(top.Deadline)), time.Duration(top.Deadline), points)
	cells := make([]Cell, 0, points*points)
	for _, d := range deadlines {
		for _, m := range budgets {
			cells = append(cells, Cell{Budget: terms.Amount(m),
				Deadline: corral.Seconds(d.Round(time.Millisecond))})
		}
	}
	errs := make([]error, len(cells))
	each(len(cells), func(i int) {
		at := in
		at.Budget, at.Deadline = cells[i].Budget, cells[i].Deadline
		if errs[i] = at.check(terms.Unit); errs[i] == nil {
			c, p := &cells[i], at.simulate(e, terms)
			c.Completed, c.Count, c.Cost, c.Makespan = p.Completed, p.Completed.Count(), p.Cost, p.Makespan
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// between returns n evenly spaced values from least to most.
func between[T ~int64](least, most T, n int) (all []T) {
	for i := range n {
		all = append(all, least+T(float64(most-least)*float64(i)/float64(n-1)))
	}
	return all
}

// each calls do for each number below n, using all cores.
func each(n int, do func(int)) {
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}
