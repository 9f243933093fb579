package dpds

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Admit decides whether to begin a workflow whose first task is next while a machine is free, and otherwise returns the
// reason (Juve 2012, Algorithm 3). SPDS and DPDS begin all workflows.
//
// The available money is the rest of the budget plus the unused paid time of running machines, less the demand of the
// admitted workflows and a margin. A workflow is admitted if its runtimes cost less than the available money.
func (r Rules) Admit(v ensemble.View, c ensemble.Claim) ensemble.Verdict {
	if !r.Aware {
		return ensemble.Verdict{Begin: true}
	}
	if why := c.Late(r.Deadline - v.Now); r.Fixes.Path && why != "" {
		return ensemble.Verdict{Never: true, Reason: why}
	}
	if why := c.Dear(r.Terms, r.money(v)-r.Margin); why != "" {
		return ensemble.Verdict{Never: !r.Fixes.Again, Reason: why}
	}
	return ensemble.Verdict{Begin: true}
}

// money returns the amount that can be spent on running tasks from now on: the rest of the budget, and the unused part
// of the paid time of present machines.
func (r Rules) money(v ensemble.View) cost.Money {
	p := r.pool(v)
	sum := max(0, r.Budget-p.spent)
	for _, m := range p.all {
		sum = sum.Plus(r.Terms.Of(v.Paid(m, r.Terms)))
	}
	return sum
}
