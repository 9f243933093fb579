package scaling

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// affordable returns the number of workers that a site's allocation can pay for, each with only its cpus and for its
// whole walltime, or the reason if that number is 0.
func affordable(tx *store.Tx, site corral.Site, s corral.Scale) (workers int, why string, err error) {
	a, err := available(tx, site)
	if err != nil || a == nil {
		return mostPilots, "", err
	}
	shape := corral.Shape{Hosts: 1, CPUs: s.CPUs, Walltime: s.Walltime}
	each := billed(a.tariff, shape, time.Duration(s.Walltime))
	if each == 0 {
		return mostPilots, "", nil
	}
	return int(min(max(0, a.left)/each, mostPilots)), a.refusal(shape), nil
}

// An allowance is the rest of an allocation, less the possible remaining cost of the pilots without a plan, for which
// no money is reserved.
type allowance struct {
	tariff cost.Tariff
	left   cost.Money
	unit   cost.Unit
}

// available returns the allowance of a site, or nil if the site has no allocation.
func available(tx *store.Tx, site corral.Site) (*allowance, error) {
	l, err := tx.Ledger(site.ID)
	if err != nil || l.Left() == nil {
		return nil, err
	}
	tariff, _, err := cost.TermsOf(site.Terms())
	if err != nil {
		return nil, err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID, Live: true, InBrief: true})
	if err != nil {
		return nil, err
	}
	a := &allowance{tariff, *l.Left(), l.Unit}
	for _, g := range glideins {
		if g.Labels[corral.PlanLabel] == "" {
			a.left = a.left.Plus(-owed(tariff, g, tx.Now()))
		}
	}
	return a, nil
}

// refusal returns why the allowance does not pay for a worker, or "".
func (a *allowance) refusal(worker corral.Shape) string {
	each := billed(a.tariff, worker, time.Duration(worker.Walltime))
	if a.left >= each {
		return ""
	}
	amount := func(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: a.unit} }
	return fmt.Sprintf("has only %s of its allocation left after what its pilots may still cost, but a worker for %s "+
		"may cost %s", amount(max(0, a.left)), worker.Walltime, amount(each))
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
