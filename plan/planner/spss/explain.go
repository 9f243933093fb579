package spss

import (
	"fmt"
	"math"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// dear returns the reason why the budget rejects a workflow.
func (r Rules) dear() string {
	return fmt.Sprintf("the budget of %s does not pay for it", r.Terms.Amount(r.Budget))
}

// Explain adds to the reasons of a plan, for each workflow that the budget rejects, a budget that admits it.
func (r Rules) Explain(e ensemble.Ensemble, p ensemble.Plan) {
	for k, reason := range p.Reasons {
		if reason != r.dear() {
			continue
		}
		if budget, ok := r.Admitting(e, k); ok {
			p.Reasons[k] += fmt.Sprintf(": %s would", r.Terms.Amount(budget))
		}
	}
}

// mostPlans limits the plans that Admitting makes before it gives up looking for a small budget.
const mostPlans = 8

// Admitting returns a budget with which Make admits workflow k: the cost of a plan with it and with the workflows of
// higher priority that this budget admits. It raises the budget until both agree; each budget may admit further
// workflows of higher priority, so that it finally takes one that admits all of them. ok is false if workflow k is
// rejected at any cost.
func (r Rules) Admitting(e ensemble.Ensemble, k int) (budget cost.Money, ok bool) {
	e = e[:k+1]
	for range mostPlans {
		p := r.make(e, k)
		switch {
		case !p.Admitted[k]:
			return 0, false
		case !r.exceeds(p.Cost):
			return r.Budget, true
		}
		r.Budget = r.least(p.Cost)
	}
	r.Budget = math.MaxInt64
	p := r.make(e, -1)
	return r.least(p.Cost), p.Admitted[k]
}

// least returns the smallest budget for a cost.
func (r Rules) least(costs cost.Money) cost.Money {
	if r.Below {
		return costs + 1
	}
	return costs
}
