package montecarlo

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A Summary summarizes the outcomes of a plan.
type Summary struct {
	Runs     int     `json:"runs"`
	Finished float64 `json:"finished"` // share of outcomes in which every task completed; only these have a makespan

	Makespan Quantiles[corral.Seconds] `json:"makespan_s"`
	// Mean over the started pilots of an outcome; only for outcomes in which any pilot started.
	Wait      Quantiles[corral.Seconds] `json:"mean_wait_s"`
	CoreHours Quantiles[float64]        `json:"core_hours"`
	Cost      Quantiles[cost.Amount]    `json:"cost"`
	Waste     float64                   `json:"waste"` // over all outcomes

	InTime   *float64 `json:"within_deadline"` // share of outcomes; null without a deadline
	InBudget *float64 `json:"within_budget"`   // null without a budget
}

// Quantiles summarize a distribution.
type Quantiles[T any] struct {
	Least  T `json:"min"`
	P10    T `json:"p10"`
	Median T `json:"median"`
	P90    T `json:"p90"`
	Most   T `json:"max"`
}

// Summarize returns the summary of outcomes for a goal.
func Summarize(all []Outcome, goal plan.Goal, unit cost.Unit) Summary {
	s := Summary{Runs: len(all)}
	var done []Outcome
	var held, work time.Duration
	inTime, inBudget := 0, 0
	for _, o := range all {
		held, work = held+o.Held, work+o.Work
		if o.Finished {
			done = append(done, o)
		}
		if o.Finished && o.Makespan <= time.Duration(goal.Deadline) {
			inTime++
		}
		if goal.Budget != nil && o.Cost <= goal.Budget.Money {
			inBudget++
		}
	}
	share := func(n int) *float64 { x := float64(n) / float64(max(1, len(all))); return &x }
	s.Finished = *share(len(done))
	if goal.Deadline > 0 {
		s.InTime = share(inTime)
	}
	if goal.Budget != nil {
		s.InBudget = share(inBudget)
	}
	if held > 0 {
		s.Waste = 1 - float64(work)/float64(held)
	}
	s.Makespan = quantiles(done, func(o Outcome) corral.Seconds { return corral.Seconds(o.Makespan) })
	started := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return o.Started == 0 })
	s.Wait = quantiles(started, func(o Outcome) corral.Seconds { return corral.Seconds(o.Wait) })
	s.CoreHours = quantiles(all, func(o Outcome) float64 { return o.Held.Hours() })
	money := quantiles(all, func(o Outcome) cost.Money { return o.Cost })
	in := func(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: unit} }
	s.Cost = Quantiles[cost.Amount]{in(money.Least), in(money.P10), in(money.Median), in(money.P90), in(money.Most)}
	return s
}

// quantiles returns the quantiles of a value over the outcomes; they are zero if there are no outcomes.
func quantiles[T cmp.Ordered](all []Outcome, of func(Outcome) T) (s Quantiles[T]) {
	values := make([]T, len(all))
	for i, o := range all {
		values[i] = of(o)
	}
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return s
	}
	at := func(tenths int) T { return values[min(n-1, n*tenths/10)] }
	return Quantiles[T]{values[0], at(1), at(5), at(9), values[n-1]}
}
