package store

import (
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/cost"
)

// The ledger of a site is not stored as such. What is stored are the promises to plans, in reservations, and the
// attempts, whose times say what was held; the site's terms say what that costs. So a pilot is charged while it holds,
// and no charge can be lost or made twice. What was held before a price was changed is charged at the new one.

// Ledger returns the ledger of a site, up to now.
func (t *Tx) Ledger(id corral.SiteID) (cost.Ledger, error) {
	site, err := t.Site(id)
	if err != nil {
		return cost.Ledger{}, err
	}
	tariff, allocation, err := cost.TermsOf(site.SiteTerms)
	if err != nil {
		return cost.Ledger{}, corral.Errorf(corral.Internal, "terms of site %s: %w", site.Name, err)
	}
	l := cost.Ledger{Unit: tariff.Rate.Unit, Balance: allocation}
	err = t.rows("select plan_id, amount from reservations where site_id = ? order by plan_id", []any{id},
		func(rows *sql.Rows) error {
			var line cost.Line
			err := rows.Scan(&line.Plan, &line.Reserved)
			l.Plans = append(l.Plans, line)
			return err
		})
	if err != nil {
		return cost.Ledger{}, fmt.Errorf("reading the reservations at site %d: %w", id, err)
	}
	var known cost.Spending // when the batch system was asked what it has left
	err = t.holdings(id, func(plan corral.PlanID, started time.Time, h cost.Holding) {
		l = l.Charge(plan, tariff.Charge(h, cost.Spending{}))
		if site.Facts != nil {
			h.Held = min(h.Held, site.Facts.At.Sub(started))
			known = tariff.Charge(h, known)
		}
	})
	if f := site.Facts; err == nil && f != nil && f.Allowance != nil {
		l = l.Within(tariff.OfCPUMinutes(f.Allowance.Left(), largest(f.Queues)), known.Billed)
	}
	return l, err
}

// largest is how many cpus the largest node has.
func largest(queues []corral.SiteQueue) (cpus int) {
	for _, q := range queues {
		cpus = max(cpus, q.CPUs)
	}
	return cpus
}

// holdings calls each for every attempt at a site that started, with the plan that asked for its glidein, 0 if that is
// none, with its start, and with what it has held so far. What began and ended between two looks at the queue held
// nothing that was seen.
func (t *Tx) holdings(site corral.SiteID, each func(corral.PlanID, time.Time, cost.Holding)) error {
	err := t.rows(`
		select
			coalesce(json_extract(labels, '$.plan'), ''),
			hosts,
			cpus,
			started_at_ms,
			ended_at_ms
		from jobs
		join glideins on glideins.id = glidein_id
		where jobs.site_id = ? and jobs.kind = 'pilot' and started_at_ms is not null`, []any{site},
		func(rows *sql.Rows) error {
			var label string
			var h cost.Holding
			var cpus int
			var started, ended time.Time
			if err := rows.Scan(&label, &h.Hosts, &cpus, at(&started), at(&ended)); err != nil {
				return err
			}
			if ended.IsZero() {
				ended = t.now
			}
			h.CPUs, h.Held = h.Hosts*cpus, max(0, ended.Sub(started))
			plan, _ := strconv.ParseInt(label, 10, 64) // a label that people gave may be anything
			each(corral.PlanID(max(0, plan)), started, h)
			return nil
		})
	if err != nil {
		return fmt.Errorf("reading what was held at site %d: %w", site, err)
	}
	return nil
}

// Reserve promises a plan so much of a site's balance, in the unit of the site's price, instead of what was promised to
// it there before; while the plan's pilots hold, that may be more or less than at first. It is for plans that are
// PROVISIONED, a Conflict error for others. What the balance does not allow is refused as cost.Ledger.Reserve says.
func (t *Tx) Reserve(plan corral.PlanID, site corral.SiteID, amount cost.Money) error {
	p, err := t.Plan(plan)
	if err != nil {
		return err
	}
	if p.State != corral.PlanProvisioned {
		return corral.ErrorAt(corral.Conflict, "plan", "plan %d is %s, and reserves nothing", plan, p.State)
	}
	l, err := t.Ledger(site)
	if err == nil {
		_, err = l.Reserve(plan, amount)
	}
	if err != nil {
		return err
	}
	_, err = t.exec(`
		insert into reservations (plan_id, site_id, amount) values (?, ?, ?)
		on conflict do update set amount = excluded.amount`, plan, site, amount)
	if err != nil {
		return fmt.Errorf("reserving for plan %d: %w", plan, err)
	}
	t.touch([]Subject{{corral.ObjectPlan, int64(plan)}, {corral.ObjectSite, int64(site)}})
	return nil
}

// Free takes back what is promised to a plan at all sites. What its pilots have cost stays charged, and so does what
// they still will, if they stay.
func (t *Tx) Free(plan corral.PlanID) error {
	if _, err := t.exec("delete from reservations where plan_id = ?", plan); err != nil {
		return fmt.Errorf("freeing what plan %d reserves: %w", plan, err)
	}
	t.touch([]Subject{{corral.ObjectPlan, int64(plan)}})
	return nil
}
