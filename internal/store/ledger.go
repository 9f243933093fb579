package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/plan/cost"
)

// A site's ledger is not stored as such. The store holds the promises to the pilots of plans, in reservations, and
// the attempts, whose times show how long they held resources; the site's terms define the cost. So a pilot is charged
// while it holds processors, no charge can be lost or counted twice, and the unused part of a promise is free as soon
// as the pilot ends. After a price change, earlier use is charged at the new price. Ended attempts may be very
// numerous, so their charges are added up once: see spendings.go.

// Ledger returns a site's ledger up to now.
func (t *Tx) Ledger(id corral.SiteID) (cost.Ledger, error) {
	site, err := t.Site(id)
	if err != nil {
		return cost.Ledger{}, err
	}
	tariff, allocation, err := cost.TermsOf(site.Terms())
	if err != nil {
		return cost.Ledger{}, corral.Errorf(corral.Internal, "terms of site %s: %w", site.Name, err)
	}
	spent, known, err := t.spent(site, tariff)
	if err != nil {
		return cost.Ledger{}, err
	}
	l := cost.NewLedger(tariff.Rate.Unit, allocation, spent)
	billed, err := t.promised(id, tariff)
	if err == nil {
		err = t.reservations(id, func(g corral.GlideinID, plan corral.PlanID, amount cost.Money) {
			l = l.Promise(plan, max(0, amount-billed[g]))
		})
	}
	if f := site.Facts; err == nil && f != nil && f.Allowance != nil {
		l = l.Within(tariff.OfCPUMinutes(f.Allowance.Left(), largest(f.Queues)), known)
	}
	return l, err
}

// spent returns the cost of attempts at a site so far, by plan, and the amount known to the batch system: the amount
// that had been billed when the batch system was last asked for the remaining allowance. If it was never asked, this is
// the amount billed for the attempts already summed.
func (t *Tx) spent(site corral.Site, tariff cost.Tariff) (spent map[corral.PlanID]cost.Spending, known cost.Money,
	err error) {
	of := attemptsOf{site: site.ID}
	if spent, of.unsummed, err = t.sums(site); err != nil {
		return nil, 0, err
	}
	for _, s := range spent {
		known = known.Plus(s.Billed)
	}
	asked := site.Facts != nil && site.Facts.Allowance != nil
	until := func(h held) cost.Money {
		h.Held = min(h.Held, site.Facts.At.Sub(h.started))
		return tariff.Charge(h.Holding, cost.Spending{}).Billed
	}
	err = t.holdings(of, func(h held) {
		spent[h.plan] = tariff.Charge(h.Holding, spent[h.plan])
		if asked {
			known = known.Plus(until(h))
		}
	})
	if err != nil || !asked || !of.unsummed {
		return spent, known, err
	}
	err = t.holdings(attemptsOf{site: site.ID, overSince: site.Facts.At}, func(h held) {
		known = known.Plus(until(h)).Plus(-tariff.Charge(h.Holding, cost.Spending{}).Billed)
	})
	return spent, known, err
}

// promised returns the amount billed so far for each pilot at a site that has a reservation.
func (t *Tx) promised(site corral.SiteID, tariff cost.Tariff) (map[corral.GlideinID]cost.Money, error) {
	billed := map[corral.GlideinID]cost.Money{}
	return billed, t.holdings(attemptsOf{site: site, promised: true}, func(h held) {
		billed[h.glidein] = billed[h.glidein].Plus(tariff.Charge(h.Holding, cost.Spending{}).Billed)
	})
}

// largest returns the number of CPUs of the largest node.
func largest(queues []corral.SiteQueue) (cpus int) {
	for _, q := range queues {
		cpus = max(cpus, q.CPUs)
	}
	return cpus
}

// reservations calls each for every live pilot at a site that has a reservation, with its plan and amount.
func (t *Tx) reservations(site corral.SiteID, each func(corral.GlideinID, corral.PlanID, cost.Money)) error {
	err := t.rows(`
		select id, coalesce(`+labelledPlan+`, ''), amount
		from glideins
		join reservations on glidein_id = id
		where site_id = ? and `+liveGlidein, []any{site},
		func(rows *sql.Rows) error {
			var g corral.GlideinID
			var label string
			var amount cost.Money
			err := rows.Scan(&g, &label, &amount)
			each(g, planOf(label), amount)
			return err
		})
	return wrap.Errorf(err, "reading the reservations at site %d", site)
}

// Reservations returns the amounts promised to the live pilots of each plan at a site, whether billed or not.
func (t *Tx) Reservations(site corral.SiteID) (map[corral.PlanID]cost.Money, error) {
	all := map[corral.PlanID]cost.Money{}
	return all, t.reservations(site, func(_ corral.GlideinID, plan corral.PlanID, amount cost.Money) {
		all[plan] = all[plan].Plus(amount)
	})
}

// planOf returns the plan that a glidein's label names, or 0 if it names none: users may set any label.
func planOf(label string) corral.PlanID {
	plan, _ := strconv.ParseInt(label, 10, 64)
	return corral.PlanID(max(0, plan))
}

// held describes the resources that an attempt has held so far.
type held struct {
	cost.Holding
	glidein corral.GlideinID
	plan    corral.PlanID // that requested it; 0: none
	started time.Time
	over    bool
}

// attemptsOf selects attempts of a site that have started; each field that is set narrows the selection.
type attemptsOf struct {
	site      corral.SiteID
	unsummed  bool      // those not yet added to a sum
	overSince time.Time // those in a sum that ended after this time
	promised  bool      // those of live glideins with a reservation
}

// conditions repeats the conditions of the indexes word for word.
func (f attemptsOf) conditions() (terms string, args []any) {
	terms, args = "jobs.site_id = ? and kind = 'pilot' and started_at_ms is not null", []any{f.site}
	if f.unsummed {
		terms += " and summed = 0"
	}
	if !f.overSince.IsZero() {
		terms += " and summed = 1 and jobs.state = 'ENDED' and ended_at_ms > ?"
		args = append(args, f.overSince.UnixMilli())
	}
	if f.promised {
		terms += ` and glidein_id in (
			select id
			from glideins
			join reservations on glidein_id = id
			where site_id = ? and ` + liveGlidein + ")"
		args = append(args, f.site)
	}
	return terms, args
}

// holdings calls each for the attempts of a site. An attempt that started and ended between two queries of the queue
// was never seen to hold anything.
func (t *Tx) holdings(of attemptsOf, each func(held)) error {
	terms, args := of.conditions()
	err := t.rows(`
		select
			glidein_id,
			coalesce(`+labelledPlan+`, ''),
			hosts,
			cpus,
			memory_mib,
			gpus,
			started_at_ms,
			ended_at_ms
		from jobs
		join glideins on glideins.id = glidein_id
		where `+terms, args,
		func(rows *sql.Rows) error {
			var h held
			var label string
			var cpus, memory, gpus int
			var ended time.Time
			err := rows.Scan(&h.glidein, &label, &h.Hosts, &cpus, &memory, &gpus, at(&h.started), at(&ended))
			if err != nil {
				return err
			}
			if h.over = !ended.IsZero(); !h.over {
				ended = t.now
			}
			h.plan, h.CPUs, h.Held = planOf(label), h.Hosts*cpus, max(0, ended.Sub(h.started))
			h.MemoryMiB, h.GPUs = h.Hosts*memory, h.Hosts*gpus
			each(h)
			return nil
		})
	return wrap.Errorf(err, "reading the holdings at site %d", of.site)
}

// Reserve promises each of a plan's pilots at a site an amount of the site's balance, in the unit of its price. Each
// pilot can have only one promise. It returns a Conflict error unless the plan is PROVISIONED. If the balance does not
// suffice for all amounts together, Reserve returns the error of cost.Ledger.Reserve.
func (t *Tx) Reserve(plan corral.PlanID, site corral.SiteID, amounts map[corral.GlideinID]cost.Money) error {
	p, err := t.PlanRow(plan)
	if err != nil {
		return err
	}
	if p.State != corral.PlanProvisioned {
		return corral.ErrorAt(corral.Conflict, "plan", "plan %d is %s and cannot reserve", plan, p.State)
	}
	var sum cost.Money
	for _, amount := range amounts {
		sum = sum.Plus(amount)
	}
	err = t.sumUp(site)
	var l cost.Ledger
	if err == nil {
		l, err = t.Ledger(site)
	}
	if err == nil {
		_, err = l.Reserve(plan, sum)
	}
	for pilot, amount := range amounts {
		if err == nil {
			err = t.reserve(plan, site, pilot, amount)
		}
	}
	t.touch([]Subject{{corral.ObjectPlan, int64(plan)}, {corral.ObjectSite, int64(site)}})
	return err
}

// reserve stores one promise.
func (t *Tx) reserve(plan corral.PlanID, site corral.SiteID, pilot corral.GlideinID, amount cost.Money) error {
	result, err := t.exec(`
		insert into reservations (glidein_id, amount)
		select id, ?
		from glideins
		where id = ? and site_id = ? and `+labelledPlan+` = ?`,
		amount, pilot, site, strconv.FormatInt(int64(plan), 10))
	if err != nil {
		return fmt.Errorf("reserving for glidein %d: %w", pilot, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, corral.Errorf(corral.NotFound, "plan %d has no glidein %d at site %d", plan, pilot, site))
	}
	return nil
}
