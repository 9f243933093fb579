package provision

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A bill is the cost of a plan's pilots at one site, by its current terms: the plan may have been made with another
// price.
type bill struct {
	site corral.Site
	unit cost.Unit
	each map[int]cost.Money // :: index among the pilots
	sum  cost.Money
}

// bills returns the cost of pilots at each of their sites, in the order in which they name the sites.
func bills(tx *store.Tx, pilots []plan.Pilot, at map[string]corral.SiteID) (all []bill, err error) {
	for i, q := range pilots {
		k := slices.IndexFunc(all, func(b bill) bool { return b.site.Name == q.Site })
		if k < 0 {
			b := bill{each: map[int]cost.Money{}}
			if b.site, err = siteOf(tx, at, q.Site); err != nil {
				return nil, err
			}
			k, all = len(all), append(all, b)
		}
		tariff, _, err := cost.TermsOf(all[k].site.SiteTerms)
		if err != nil {
			return nil, err
		}
		if q.Hedges != nil && *q.Hedges >= 0 && *q.Hedges < len(pilots) { // it may be the one that works
			q.End = max(q.End, q.Start+pilots[*q.Hedges].End-pilots[*q.Hedges].Start)
		}
		_, all[k].each[i] = plan.Tariff(tariff).Bill(q)
		all[k].sum, all[k].unit = all[k].sum.Plus(all[k].each[i]), tariff.Rate.Unit
	}
	return all, nil
}

// afford refuses pilots of a plan that the balance of one of their sites does not allow, with a Conflict or an
// Unsatisfiable error. It changes nothing.
func afford(tx *store.Tx, id corral.PlanID, pilots []plan.Pilot, at map[string]corral.SiteID) error {
	all, err := bills(tx, pilots, at)
	for _, b := range all {
		var l cost.Ledger
		if err == nil {
			l, err = tx.Ledger(b.site.ID)
		}
		if err == nil {
			_, err = l.Reserve(id, b.sum)
			err = atSite(b.site, err)
		}
	}
	return err
}

// reserve reserves the cost of a plan's pilots, within the transaction that creates their glideins. If a site's
// balance does not allow it, it returns a Conflict or an Unsatisfiable error, and the transaction must be rolled
// back.
func reserve(tx *store.Tx, id corral.PlanID, pilots []plan.Pilot, glideins []corral.Glidein) error {
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

// atSite adds the site to an error.
func atSite(s corral.Site, err error) error {
	if err == nil {
		return nil
	}
	return corral.ErrorAt(corral.KindOf(err), "site "+s.Name, "%w", err)
}

// Ledger returns the ledger of a site, with its terms.
func Ledger(tx *store.Tx, site corral.Site) (api.Ledger, error) {
	l, err := tx.Ledger(site.ID)
	if err != nil {
		return api.Ledger{}, err
	}
	tariff, _, err := cost.TermsOf(site.SiteTerms)
	return api.Ledger{Site: site.Name, Price: tariff.Rate.String(), Billing: tariff.Billing.String(),
		Statement: l.Statement()}, err
}

// charge fills in a site's charges, and the amount left to spend there.
func (f Facts) charge(s *plan.Site) {
	tariff, _, err := cost.TermsOf(f.Site.SiteTerms)
	if err != nil { // unreachable: terms are checked before they are stored
		tariff = cost.CoreHours
	}
	s.Tariff, s.Left = plan.Tariff(tariff), f.Ledger.Left()
}

// CheckTerms refuses, within the transaction that sets them, inconsistent terms of a site, and a price in another
// unit while pilots of plans have money reserved in the old one.
func CheckTerms(tx *store.Tx, before, after corral.Site) error {
	old, _, err := cost.TermsOf(before.SiteTerms)
	if err != nil {
		return err
	}
	next, _, err := cost.TermsOf(after.SiteTerms)
	if err != nil || next.Rate.Unit == old.Rate.Unit {
		return err
	}
	reserved, err := tx.Reservations(before.ID)
	if err != nil || len(reserved) == 0 {
		return err
	}
	id := slices.Min(slices.Collect(maps.Keys(reserved)))
	return corral.ErrorAt(corral.Conflict, "price", "plan %d reserves %s: release it before the price is in %s", id,
		cost.Amount{Money: reserved[id], Unit: old.Rate.Unit}, next.Rate.Unit)
}
