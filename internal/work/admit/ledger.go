package admit

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A bill holds the costs of pilots at one site, at the site's current terms: a plan may have been made with a different
// price.
type bill struct {
	site corral.Site
	unit cost.Unit
	each map[int]cost.Money // :: index in the list of pilots
	sum  cost.Money
}

// bills returns the costs of pilots by site, in the order in which the pilots first name the sites.
func bills(tx *store.Tx, pilots []plan.Pilot, at map[string]corral.SiteID) (all []bill, err error) {
	for i, q := range pilots {
		k := slices.IndexFunc(all, func(b bill) bool { return b.site.Name == q.Site })
		if k < 0 {
			b := bill{each: map[int]cost.Money{}}
			if b.site, err = SiteOfPlan(tx, at, q.Site); err != nil {
				return nil, err
			}
			k, all = len(all), append(all, b)
		}
		tariff, _, err := cost.TermsOf(all[k].site.Terms())
		if err != nil {
			return nil, err
		}
		if q.Hedges != nil && *q.Hedges >= 0 && *q.Hedges < len(pilots) { // it may be the one that runs the tasks
			q.End = max(q.End, q.Start+pilots[*q.Hedges].End-pilots[*q.Hedges].Start)
		}
		_, all[k].each[i] = plan.Tariff(tariff).Bill(q)
		all[k].sum, all[k].unit = all[k].sum.Plus(all[k].each[i]), tariff.Rate.Unit
	}
	return all, nil
}

// Pilots checks pilots that are to be added to a plan. It returns a Forbidden error if the owner's quota does not allow
// all of them, and a Conflict or Unsatisfiable error if the balance of a site does not. at maps the names of the plan's
// sites to their ids. Pilots changes nothing; Glidein and Reserve check each pilot again.
func Pilots(tx *store.Tx, p corral.Plan, pilots []plan.Pilot, at map[string]corral.SiteID) error {
	if err := tx.Room("glideins", p.Owner, len(pilots)); err != nil {
		return err
	}
	all, err := bills(tx, pilots, at)
	for _, b := range all {
		var l cost.Ledger
		if err == nil {
			l, err = tx.Ledger(b.site.ID)
		}
		if err == nil {
			_, err = l.Reserve(p.ID, b.sum)
			err = atSite(b.site, err)
		}
	}
	return err
}

// Reserve charges the costs of a plan's pilots to the balances of their sites, in the transaction that creates their
// glideins. If a balance is too low, it returns a Conflict or Unsatisfiable error, and the transaction must not be
// committed.
func Reserve(tx *store.Tx, id corral.PlanID, pilots []plan.Pilot, glideins []corral.Glidein) error {
	at := map[string]corral.SiteID{}
	for _, g := range glideins {
		at[g.SiteName] = g.Site
	}
	all, err := bills(tx, pilots, at)
	for _, b := range all {
		amounts := map[corral.GlideinID]cost.Money{}
		for i, money := range b.each {
			amounts[glideins[i].ID] = money
		}
		if err == nil {
			err = atSite(b.site, tx.Reserve(id, b.site.ID, amounts))
		}
		if err == nil {
			err = tx.Log(corral.ObjectPlan, int64(id), "reserve", fmt.Sprintf("%s at site %s",
				cost.Amount{Money: b.sum, Unit: b.unit}, b.site.Name))
		}
	}
	return err
}

// shortest is the time for which a pilot outside plans must be affordable to be requested. It ends in time if the
// balance of its site is used up before its walltime.
const shortest = time.Minute

// affordable refuses a pilot outside plans if the balance of its site does not pay for its first minute, or for the
// first period that is billed.
func affordable(tx *store.Tx, site corral.Site, g corral.Glidein) error {
	if site.Allocation == "" {
		return nil
	}
	l, err := tx.Ledger(site.ID)
	if err != nil {
		return err
	}
	tariff, _, err := cost.TermsOf(site.Terms())
	if err != nil {
		return err
	}
	_, least := plan.Tariff(tariff).Bill(plan.Pilot{Shape: g.Shape, End: corral.Seconds(shortest)})
	if left := l.Left(); left != nil && *left < least {
		err = corral.Errorf(corral.Unsatisfiable, "the pilot costs %s at least, and %s of the allocation of %s is "+
			"left; raise it by `corral site set %s --allocation`", cost.Amount{Money: least, Unit: l.Unit},
			cost.Amount{Money: *left, Unit: l.Unit}, site.Allocation, site.Name)
	}
	return atSite(site, err)
}

// atSite adds the site to an error.
func atSite(s corral.Site, err error) error {
	if err == nil {
		return nil
	}
	return corral.ErrorAt(corral.KindOf(err), "site "+s.Name, "%w", err)
}

// SiteOfPlan returns the site that a plan names: the one for which the plan was made, even if another site has the name
// now.
func SiteOfPlan(tx *store.Tx, at map[string]corral.SiteID, name string) (corral.Site, error) {
	id, ok := at[name]
	if !ok {
		return corral.Site{}, corral.NoSuch(corral.ObjectSite, name)
	}
	site, err := tx.Site(id)
	if err == nil && site.State == corral.SiteDeleted {
		err = corral.ErrorAt(corral.Conflict, "site", "%s, for which the plan was made, has been removed: make the "+
			"plan again", name)
	}
	return site, err
}
