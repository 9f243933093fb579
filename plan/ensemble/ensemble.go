package ensemble

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// An Ensemble is its workflows, the one of the highest priority first. Priorities are absolute: to complete one is
// worth more than to complete all behind it. A workflow may occur twice.
type Ensemble []plan.Work

// Check says what is wrong with an ensemble, as an Invalid error whose place is a workflow: that it has no workflow, or
// one without tasks.
func (e Ensemble) Check() error {
	if len(e) == 0 {
		return corral.Errorf(corral.Invalid, "the ensemble has no workflow: name one at least")
	}
	for i, w := range e {
		if len(w.Tasks) == 0 {
			return corral.ErrorAt(corral.Invalid, fmt.Sprintf("workflow %d (%.80s)", i, w.Name), "it has no task")
		}
	}
	return nil
}

// Tasks returns how many tasks all workflows have.
func (e Ensemble) Tasks() (n int) {
	for _, w := range e {
		n += len(w.Tasks)
	}
	return n
}

// Bounds are the constraints between which an ensemble is of interest: below them no workflow can be completed, at
// their upper ends nearly all can (§2.5 of corral-thesis). The costs are work × price, without whole periods or idle
// time, so that the largest budget need not suffice for all (trap T26); the longest deadline is the sum of all critical
// paths.
type Bounds struct {
	LeastBudget, MostBudget     cost.Money
	LeastDeadline, MostDeadline time.Duration
}

// Bounds returns the bounds of an ensemble that has a workflow.
func (e Ensemble) Bounds(t Terms) (b Bounds) {
	for i, w := range e {
		costs, path := t.Of(Runtime(w)), w.Graph.CriticalPath(w.Runtimes())
		if i == 0 || costs < b.LeastBudget {
			b.LeastBudget = costs
		}
		if i == 0 || path < b.LeastDeadline {
			b.LeastDeadline = path
		}
		b.MostBudget, b.MostDeadline = b.MostBudget.Plus(costs), b.MostDeadline+path
	}
	return b
}

// Runtime is what all tasks of a workflow take one after the other, as they are estimated.
func Runtime(w plan.Work) (sum time.Duration) {
	for _, t := range w.Tasks {
		sum += t.Runtime
	}
	return sum
}
