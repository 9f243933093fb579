package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// What attempts that are over have cost does not change any more, unless the terms of their site do. So it is added up,
// by plan, when something is reserved at the site, and each attempt is marked as summed in the same transaction.
// Whoever reads a ledger adds those that are not: the live ones, and those that ended since.

const msPerHour = float64(time.Hour / time.Millisecond)

// sums returns what is added up for a site, by plan; ok is false if nothing was for its present terms, and then no mark
// counts.
func (t *Tx) sums(site corral.Site) (spent map[corral.PlanID]cost.Spending, ok bool, err error) {
	spent = map[corral.PlanID]cost.Spending{}
	var price, billing string
	err = t.row("select price, billing from spending_terms where site_id = ?", []any{site.ID}, &price, &billing)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (price != site.Price || billing != site.Billing):
		return spent, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading for which terms of site %d spendings are: %w", site.ID, err)
	}
	err = t.rows(`
		select
			plan_id,
			used,
			billed,
			used_ms,
			billed_ms
		from spendings
		where site_id = ?`, []any{site.ID},
		func(rows *sql.Rows) error {
			var plan corral.PlanID
			var s cost.Spending
			var used, billed int64 // of all pilots of years: as a time.Duration it would not fit
			err := rows.Scan(&plan, &s.Used, &s.Billed, &used, &billed)
			s.UsedHours, s.BilledHours = float64(used)/msPerHour, float64(billed)/msPerHour
			spent[plan] = s
			return err
		})
	if err != nil {
		return nil, false, fmt.Errorf("reading the spendings at site %d: %w", site.ID, err)
	}
	return spent, true, nil
}

// sumUp adds up what attempts at a site have cost that ended since it was done before; at other terms than before, of
// all of them.
func (t *Tx) sumUp(id corral.SiteID) error {
	site, err := t.Site(id)
	if err != nil {
		return err
	}
	tariff, _, err := cost.TermsOf(site.SiteTerms)
	if err != nil {
		return corral.Errorf(corral.Internal, "terms of site %s: %w", site.Name, err)
	}
	_, ok, err := t.sums(site)
	if err == nil && !ok {
		err = t.forgetSums(site)
	}
	more := map[corral.PlanID]cost.Spending{}
	if err == nil {
		err = t.holdings(attemptsOf{site: id, unsummed: true}, func(h held) {
			if h.over {
				more[h.plan] = tariff.Charge(h.Holding, more[h.plan])
			}
		})
	}
	for plan, s := range more {
		if err == nil {
			err = t.addSpending(id, plan, s)
		}
	}
	if err != nil || len(more) == 0 {
		return err
	}
	_, err = t.exec(`
		update jobs
		set summed = 1
		where site_id = ? and kind = 'pilot' and started_at_ms is not null and summed = 0 and state = 'ENDED'`, id)
	if err != nil {
		return fmt.Errorf("marking attempts at site %d as summed: %w", id, err)
	}
	return nil
}

// addSpending adds to the sum of a plan at a site.
func (t *Tx) addSpending(site corral.SiteID, plan corral.PlanID, s cost.Spending) error {
	ms := func(hours float64) int64 { return int64(math.Round(hours * float64(time.Hour/time.Millisecond))) }
	_, err := t.exec(`
		insert into spendings (
			site_id,
			plan_id,
			used,
			billed,
			used_ms,
			billed_ms
		)
		values (?, ?, ?, ?, ?, ?)
		on conflict do update set
			used = used + excluded.used,
			billed = billed + excluded.billed,
			used_ms = used_ms + excluded.used_ms,
			billed_ms = billed_ms + excluded.billed_ms`,
		site, plan, s.Used, s.Billed, ms(s.UsedHours), ms(s.BilledHours))
	if err != nil {
		return fmt.Errorf("adding what plan %d spent at site %d: %w", plan, site, err)
	}
	return nil
}

// forgetSums has nothing be added up for a site, from now on for its present terms.
func (t *Tx) forgetSums(site corral.Site) error {
	for _, q := range []struct {
		query string
		args  []any
	}{
		{"delete from spendings where site_id = ?", []any{site.ID}},
		{"update jobs set summed = 0 where site_id = ? and kind = 'pilot' and summed = 1", []any{site.ID}},
		{"insert or replace into spending_terms (site_id, price, billing) values (?, ?, ?)",
			[]any{site.ID, site.Price, site.Billing}},
	} {
		if _, err := t.exec(q.query, q.args...); err != nil {
			return fmt.Errorf("adding up anew what was spent at site %d: %w", site.ID, err)
		}
	}
	return nil
}
