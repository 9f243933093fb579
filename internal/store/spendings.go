package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/plan/cost"
)

// The cost of ended attempts changes only if the site's terms change. So it is added up, by plan, when an amount is
// reserved at the site, and each attempt is marked as summed in the same transaction. Reading a ledger adds the
// attempts that are not summed: live ones, and those that have ended since.

const msPerHour = float64(time.Hour / time.Millisecond)

// sums returns the sums of a site, by plan. ok is false if there are none for its present terms; in that case the
// marks do not count.
func (t *Tx) sums(site corral.Site) (spent map[corral.PlanID]cost.Spending, ok bool, err error) {
	spent = map[corral.PlanID]cost.Spending{}
	var price, billing string
	err = t.row("select price, billing from spending_terms where site_id = ?", []any{site.ID}, &price, &billing)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (price != site.Terms().Price || billing != site.Billing):
		return spent, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading the terms of the spendings at site %d: %w", site.ID, err)
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
			var used, billed int64 // total of all pilots over years: a time.Duration would overflow
			err := rows.Scan(&plan, &s.Used, &s.Billed, &used, &billed)
			s.UsedHours, s.BilledHours = float64(used)/msPerHour, float64(billed)/msPerHour
			spent[plan] = s
			return err
		})
	return spent, true, wrap.Errorf(err, "reading the spendings at site %d", site.ID)
}

// sumUp adds the cost of the attempts at a site that have ended since the last call. If the terms have changed, it
// adds up all of them again.
func (t *Tx) sumUp(id corral.SiteID) error {
	site, err := t.Site(id)
	if err != nil {
		return err
	}
	tariff, _, err := cost.TermsOf(site.Terms())
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
	return wrap.Errorf(err, "marking attempts at site %d as summed", id)
}

// addSpending adds to a plan's sum at a site.
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
	return wrap.Errorf(err, "adding the spendings of plan %d at site %d", plan, site)
}

// forgetSums resets the sums of a site and stores its present terms with them.
func (t *Tx) forgetSums(site corral.Site) error {
	for _, q := range []struct {
		query string
		args  []any
	}{
		{"delete from spendings where site_id = ?", []any{site.ID}},
		{"update jobs set summed = 0 where site_id = ? and kind = 'pilot' and summed = 1", []any{site.ID}},
		{"insert or replace into spending_terms (site_id, price, billing) values (?, ?, ?)",
			[]any{site.ID, site.Terms().Price, site.Billing}},
	} {
		if _, err := t.exec(q.query, q.args...); err != nil {
			return fmt.Errorf("resetting the spendings at site %d: %w", site.ID, err)
		}
	}
	return nil
}
