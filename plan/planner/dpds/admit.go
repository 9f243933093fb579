package dpds

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Admit says whether a workflow is begun whose first task is next while a machine is free (Juve 2012, Algorithm 3); if
// not, why. SPDS and DPDS begin all.
//
// The money is what is left for new machines, and what has been paid for running ones and is not used yet, less what
// the admitted workflows take and a margin. The workflow is admitted if its runtimes cost less than that.
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

// money is what can be spent on running tasks from now on: what is left for new machines, and what those that are there
// have been paid and did not use yet.
func (r Rules) money(v ensemble.View) cost.Money {
	p := r.pool(v)
	sum := max(0, r.Budget-p.spent)
	for _, m := range p.all {
		sum = sum.Plus(r.Terms.Of(v.Paid(m, r.Terms)))
	}
	return sum
}
