package ensemble

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// An Ensemble is a list of workflows by descending priority. Priorities are absolute: completing one workflow is worth
// more than completing all after it. A workflow may occur twice.
type Ensemble []plan.Work

// Check returns an Invalid error if the ensemble has no workflow, or a workflow has no tasks. The place of the error is
// the workflow.
func (e Ensemble) Check() error {
	if len(e) == 0 {
		return corral.Errorf(corral.Invalid, "the ensemble has no workflow: name at least one")
	}
	for i, w := range e {
		if len(w.Tasks) == 0 {
			return corral.ErrorAt(corral.Invalid, fmt.Sprintf("workflow %d (%.80s)", i, w.Name), "it has no tasks")
		}
	}
	return nil
}

// Tasks returns the total number of tasks.
func (e Ensemble) Tasks() (n int) {
	for _, w := range e {
		n += len(w.Tasks)
	}
	return n
}

// Bounds are the ranges of budgets and deadlines that are of interest for an ensemble: below the lower bounds no
// workflow can be completed, and at the upper bounds nearly all can be. The costs are work × price, without rounding up
// to periods and without idle time, so the largest budget may not suffice for all workflows. The longest deadline is
// the sum of all critical paths.
type Bounds struct {
	LeastBudget, MostBudget     cost.Money
	LeastDeadline, MostDeadline time.Duration
}

// Bounds returns the bounds of an ensemble with at least one workflow.
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

// Runtime returns the sum of the estimated runtimes of a workflow's tasks.
func Runtime(w plan.Work) (sum time.Duration) {
	for _, t := range w.Tasks {
		sum += t.Runtime
	}
	return sum
}
