package spss

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Shared returns the guard for where tasks do not take what they were planned to, or cannot be kept for a machine: its
// machines come and go as planned, but whatever is free takes what is ready of the workflow of the highest priority,
// and a workflow that is not in the plan is begun when its turn comes and what is left pays for it, as WA-DPDS has it.
//
// A plan is tight: where tasks err, one that is late makes others late, of whatever workflow. Then it is better to be
// sure of the first ones than to be late with all.
func (g *Guard) Shared() ensemble.Policy { return shared{g} }

// A shared guard does not say which tasks are a machine's own.
type shared struct{ guard *Guard }

// Step implements ensemble.Policy.
func (s shared) Step(v ensemble.View) ensemble.Orders { return s.guard.Step(v) }

// mostTasks is more than any workflow has.
const mostTasks = 1 << 32

// Place implements ensemble.Policy: by workflow, those of the plan first, then by planned start.
func (s shared) Place(workflow, task int) int64 {
	if !s.guard.plan.Admitted[workflow] {
		return int64(len(s.guard.own)+workflow) * mostTasks
	}
	return int64(workflow)*mostTasks + int64(s.guard.own[workflow][task].start.Milliseconds())
}

// Admit implements ensemble.Policy.
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

// margin is money that no workflow is begun for: a hundredth of the budget.
func (g *Guard) margin() cost.Money { return g.Budget / 100 }
