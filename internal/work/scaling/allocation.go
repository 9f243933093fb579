package scaling

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// affordable returns the number of workers that a site's allocation can pay for, each for its whole walltime, or the
// reason if that number is 0. Pilots without a plan, for which no money is reserved, count with their possible
// remaining cost.
func affordable(tx *store.Tx, site corral.Site, s corral.Scale) (workers int, why string, err error) {
	l, err := tx.Ledger(site.ID)
	if err != nil || l.Left() == nil {
		return mostPilots, "", err
	}
	tariff, _, err := cost.TermsOf(site.SiteTerms)
	if err != nil {
		return 0, "", err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID, Live: true, InBrief: true})
	if err != nil {
		return 0, "", err
	}
	left := *l.Left()
	for _, g := range glideins {
		if g.Labels[corral.PlanLabel] == "" {
			left = left.Plus(-owed(tariff, g, tx.Now()))
		}
	}
	each := billed(tariff, corral.Shape{Hosts: 1, CPUs: s.CPUs}, time.Duration(s.Walltime))
	if each == 0 {
		return mostPilots, "", nil
	}
	if left < each {
		amount := func(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: l.Unit} }
		why = fmt.Sprintf("has %s of its allocation left, beside what pilots there may cost, "+
			"and a worker for %s may cost %s", amount(max(0, left)), s.Walltime, amount(each))
	}
	return int(min(max(0, left)/each, mostPilots)), why, nil
}

// owed returns a glidein's possible cost beyond the amount billed for it so far.
func owed(t cost.Tariff, g corral.Glidein, now time.Time) cost.Money {
	sum := billed(t, g.Shape, time.Duration(g.Walltime))
	for _, a := range g.Live() {
		if !a.StartedAt.IsZero() {
			sum = sum.Plus(-billed(t, g.Shape, now.Sub(a.StartedAt)))
		}
	}
	return max(0, sum)
}

// billed returns the cost of a pilot that is held for a time.
func billed(t cost.Tariff, shape corral.Shape, held time.Duration) cost.Money {
	_, money := plan.Tariff(t).Bill(plan.Pilot{Shape: shape, End: corral.Seconds(held)})
	return money
}
