package provision

import (
	"encoding/json"
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// Reserve promises a plan, within the transaction that begins it, what its pilots cost by the present terms of their
// sites: a plan may have been made with another price. What a site's balance does not allow is a Conflict or an
// Unsatisfiable error, and then nothing of the transaction may stay.
func Reserve(tx *store.Tx, row corral.Plan) error {
	var p plan.Plan
	if err := json.Unmarshal(row.Document, &p); err != nil {
		return fmt.Errorf("reading plan %d: %w", row.ID, err)
	}
	return reserveMore(tx, row.ID, p.Pilots)
}

// reserveMore promises a plan what pilots cost beyond what was promised to it before.
func reserveMore(tx *store.Tx, id corral.PlanID, pilots []plan.Pilot) error {
	var names []string
	at := map[string][]plan.Pilot{} // :: site → its pilots
	for _, q := range pilots {
		if at[q.Site] == nil {
			names = append(names, q.Site)
		}
		at[q.Site] = append(at[q.Site], q)
	}
	for _, name := range names {
		if err := reserveAt(tx, id, name, at[name]); err != nil {
			return err
		}
	}
	return nil
}

// reserveAt promises a plan what pilots at one site cost, on top of what was promised to it there.
func reserveAt(tx *store.Tx, id corral.PlanID, name string, pilots []plan.Pilot) error {
	site, err := tx.SiteNamed(name)
	if err != nil {
		return err
	}
	tariff, _, err := cost.TermsOf(site.SiteTerms)
	if err != nil {
		return err
	}
	before, err := tx.Ledger(site.ID)
	if err != nil {
		return err
	}
	var sum cost.Money
	for _, line := range before.Plans {
		if line.Plan == id {
			sum = line.Reserved
		}
	}
	for _, q := range pilots {
		_, money := plan.Tariff(tariff).Bill(q)
		sum = sum.Plus(money)
	}
	if err := tx.Reserve(id, site.ID, sum); err != nil {
		return corral.ErrorAt(corral.KindOf(err), "site "+name, "%w", err)
	}
	amount := cost.Amount{Money: sum, Unit: tariff.Rate.Unit}
	return tx.Log(corral.ObjectPlan, int64(id), "reserve", fmt.Sprintf("%s at site %s", amount, name))
}

// Ledger returns the ledger of a site, with the terms that it is charged by.
func Ledger(tx *store.Tx, site corral.Site) (api.Ledger, error) {
	l, err := tx.Ledger(site.ID)
	if err != nil {
		return api.Ledger{}, err
	}
	tariff, _, err := cost.TermsOf(site.SiteTerms)
	return api.Ledger{Site: site.Name, Price: tariff.Rate.String(), Billing: tariff.Billing.String(),
		Statement: l.Statement()}, err
}

// charge fills in what a site charges, and what is left to spend there.
func (f Facts) charge(s *plan.Site) {
	tariff, _, err := cost.TermsOf(f.Site.SiteTerms)
	if err != nil { // unreachable: terms are checked before they are kept
		tariff = cost.CoreHours
	}
	s.Tariff, s.Left = plan.Tariff(tariff), f.Ledger.Left()
}

// CheckTerms refuses, within the transaction that sets them, terms of a site that do not go together, and a price in
// another unit while plans reserve money in the old one.
func CheckTerms(tx *store.Tx, before, after corral.Site) error {
	old, _, err := cost.TermsOf(before.SiteTerms)
	if err != nil {
		return err
	}
	next, _, err := cost.TermsOf(after.SiteTerms)
	if err != nil || next.Rate.Unit == old.Rate.Unit {
		return err
	}
	l, err := tx.Ledger(before.ID)
	for _, line := range l.Plans {
		if err == nil && line.Reserved > 0 {
			return corral.ErrorAt(corral.Conflict, "price", "plan %d reserves %s: release it before the price is in %s",
				line.Plan, cost.Amount{Money: line.Reserved, Unit: l.Unit}, next.Rate.Unit)
		}
	}
	return err
}
