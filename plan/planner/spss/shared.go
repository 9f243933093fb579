package spss

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Shared returns a guard for tasks whose runtimes differ from the plan, or that cannot be bound to a machine. Its
// machines start and end as planned, but any free machine takes a ready task of the workflow with the highest priority,
// and a workflow outside the plan begins at its turn if the remaining money covers it, as in WA-DPDS.
//
// A plan is tight: a task that takes longer than estimated delays tasks of any workflow. In that case completing the
// first workflows with certainty is better than delaying all of them.
func (g *Guard) Shared() ensemble.Strategy { return shared{g} }

// A shared guard does not bind tasks to machines.
type shared struct{ guard *Guard }

// Step implements ensemble.Strategy.
func (s shared) Step(v ensemble.View) ensemble.Orders { return s.guard.Step(v) }

// mostTasks exceeds the number of tasks of any workflow.
const mostTasks = 1 << 32

// Place implements ensemble.Strategy: it sorts by workflow, with the workflows of the plan first, and then by planned
// start.
func (s shared) Place(workflow, task int) int64 {
	if !s.guard.plan.Admitted[workflow] {
		return int64(len(s.guard.own)+workflow) * mostTasks
	}
	return int64(workflow)*mostTasks + int64(s.guard.own[workflow][task].start.Milliseconds())
}

// Admit implements ensemble.Strategy.
func (s shared) Admit(v ensemble.View, c ensemble.Claim) ensemble.Verdict {
	if planned := s.guard.Admit(v, c); planned.Begin {
		return planned
	}
	g := s.guard
	if why := c.Late(g.Deadline - v.Now); why != "" {
		return ensemble.Verdict{Never: true, Reason: why}
	}
	money := max(0, g.left(v))
	for _, m := range v.Machines {
		money = money.Plus(g.Terms.Of(v.Paid(m, g.Terms)))
	}
	if why := c.Dear(g.Terms, money-g.margin()); why != "" {
		return ensemble.Verdict{Reason: why}
	}
	return ensemble.Verdict{Begin: true}
}

// margin returns the money that is not used for beginning workflows: 1 % of the budget.
func (g *Guard) margin() cost.Money { return g.Budget / 100 }
