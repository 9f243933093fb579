package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A family contains the ensembles of one application and kind, one for each seed, each with a grid of constraints.
type family struct {
	application string
	kind        ensemble.Kind
	factor      int64 // by which runtimes of tasks are multiplied
}

// draw returns the ensemble for a seed.
func (d desk) draw(f family, seed int) ensemble.Ensemble {
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	return f.kind.Of(d.workflows, rng, func(size, instance int) plan.Work {
		return longer(d.source.take(f.application, size, instance), f.factor)
	})
}

// longer multiplies the runtimes of a workflow's tasks by factor.
func longer(w plan.Work, factor int64) plan.Work {
	if factor == 1 {
		return w
	}
	tasks := make([]plan.Task, len(w.Tasks))
	for i, t := range w.Tasks {
		t.Runtime *= time.Duration(factor)
		tasks[i] = t
	}
	w.Tasks = tasks
	return w
}

// grid returns the given number of budgets and deadlines, evenly spaced between an ensemble's bounds, which are rounded
// up to whole dollars and seconds as in the authors' program.
func grid(e ensemble.Ensemble, t ensemble.Terms, points int) (budgets []cost.Money, deadlines []time.Duration) {
	b := e.Bounds(t)
	const dollar = 1_000_000
	up := func(m cost.Money) cost.Money { return (m + dollar - 1) / dollar * dollar }
	seconds := func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
	for i := range points {
		n, of := cost.Money(i), cost.Money(max(1, points-1))
		low, high := up(b.LeastBudget), up(b.MostBudget)
		budgets = append(budgets, low+(high-low)*n/of)
		first, last := seconds(b.LeastDeadline), seconds(b.MostDeadline)
		between := (last - first) * time.Duration(n) / time.Duration(of)
		deadlines = append(deadlines, (first + between).Truncate(time.Millisecond))
	}
	return budgets, deadlines
}

// sweep simulates all cases of a family with the given algorithms; chance sets the random effects for a case. then is
// called once for each case, in undefined order, by one goroutine at a time.
func (d desk) sweep(f family, chance func(p *problem, seed int), algorithms []algorithm,
	then func(p problem, results []result),
) {
	type todo struct {
		p    problem
		seed int
	}
	work := make(chan todo)
	var wg sync.WaitGroup
	var one sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for t := range work {
				if chance != nil {
					chance(&t.p, t.seed)
				}
				results := make([]result, len(algorithms))
				for i, a := range algorithms {
					results[i] = a.solve(t.p)
				}
				one.Lock()
				then(t.p, results)
				one.Unlock()
			}
		})
	}
	for seed := range d.seeds {
		e := d.draw(f, seed)
		budgets, deadlines := grid(e, ensemble.Hourly, d.points)
		for _, b := range budgets {
			for _, deadline := range deadlines {
				p := problem{budget: b}
				p.Ensemble, p.Deadline, p.Terms = e, deadline, ensemble.Hourly
				work <- todo{p, seed}
			}
		}
	}
	close(work)
	wg.Wait()
}
