package montecarlo

import (
	"context"
	"slices"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// The numbers of outcomes for a plan's odds. The simulation of an outcome takes about as long as that of tasks +
// pairWork × pilots² tasks, because each change of a pilot makes corrald's rules examine all pilots.
const (
	oddsWork  = 200_000 // sum over all outcomes, in tasks
	leastOdds = 20
	pairWork  = 4
)

// oddsDraws returns the number of outcomes for a plan's odds: at most as many as for an exact share, and fewer, but not
// fewer than the least number, if they would take more than the given work.
func oddsDraws(pl *plan.Plan, tasks, work, least, most int) int {
	n := len(pl.Pilots)
	return min(most, max(least, work/max(1, tasks+pairWork*n*n)))
}

// Odds simulates a plan. It returns nil if the workflow is too large, or if ctx is cancelled. The shares of a plan that
// meets its deadline with a confidence are those by which the plan was chosen.
func (m Model) Odds(ctx context.Context, pl *plan.Plan, seed uint64) *plan.Odds {
	n := m.draws()
	if len(m.Work.Tasks) > mostTasks || n == 0 {
		return nil
	}
	if n > 1 && pl.Confidence == nil && m.Exact == 0 {
		n = oddsDraws(pl, len(m.Work.Tasks), oddsWork, leastOdds, n)
	}
	m.ctx = ctx
	all := m.Outcomes(pl, n, seed)
	if m.context().Err() != nil {
		return nil
	}
	return oddsOf(all, pl.Goal, m.Unit())
}

func oddsOf(all []Outcome, goal plan.Goal, unit cost.Unit) *plan.Odds {
	s := Summarize(all, goal, unit)
	share := func(of float64) plan.Frequency { return plan.FrequencyOf(int(of*float64(len(all))+0.5), len(all)) }
	odds := &plan.Odds{Outcomes: len(all), Finishes: share(s.Finished)}
	if s.InTime != nil {
		in := share(*s.InTime)
		odds.InTime = &in
	}
	if s.InBudget != nil {
		in := share(*s.InBudget)
		odds.InBudget = &in
	}
	odds.Makespan.Median, odds.Makespan.P90 = s.Makespan.Median, s.Makespan.P90
	odds.Cost.Median, odds.Cost.P90 = s.Cost.Median, s.Cost.P90
	return odds
}

// meets returns the share of outcomes that reach a goal: every task completes within the deadline and the budget.
func meets(all []Outcome, goal plan.Goal) float64 {
	met := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool {
		return !o.Finished || !goal.Within(cost.Point{Makespan: o.Makespan, Cost: o.Cost})
	})
	return float64(len(met)) / float64(max(1, len(all)))
}
