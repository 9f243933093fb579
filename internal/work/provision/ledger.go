package provision

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// Ledger returns the ledger of a site, with the terms by which the site charges.
func Ledger(tx *store.Tx, site corral.Site) (api.Ledger, error) {
	l, err := tx.Ledger(site.ID)
	if err != nil {
		return api.Ledger{}, err
	}
	tariff, _, err := cost.TermsOf(site.Terms())
	return api.Ledger{Site: site.Name, Price: tariff.Rate.String(), Billing: tariff.Billing.String(),
		Statement: l.Statement()}, err
}

// charge fills in a site's charges and the amount that may still be spent there.
func (f Facts) charge(s *plan.Site) {
	tariff, _, err := cost.TermsOf(f.Site.Terms())
	if err != nil { // unreachable: terms are checked before they are stored
		tariff = cost.CoreHours
	}
	s.Tariff, s.Left = plan.Tariff(tariff), f.Ledger.Left()
}

// CheckTerms refuses inconsistent terms of a site, and a price in another unit while money is reserved for pilots of
// plans in the old unit. It is called within the transaction that sets the terms.
func CheckTerms(tx *store.Tx, before, after corral.Site) error {
	old, _, err := cost.TermsOf(before.Terms())
	if err != nil {
		return err
	}
	next, _, err := cost.TermsOf(after.Terms())
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
