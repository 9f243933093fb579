package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// The assumed time for which a pilot still holds its hosts after it was ordered to end at once: until the order has
// reached it, its tasks have been killed and its job has left the queue.
const (
	graceHere  = 2 * time.Second
	graceThere = 15 * time.Second
)

// grace returns the time for which the site's pilots still hold their hosts after they were ordered to end: at least
// the time that nine of ten earlier pilots did not exceed.
func (f Facts) grace() time.Duration {
	if d, learned := f.leaving(0.9); learned > 0 {
		return max(graceHere, d)
	}
	if f.Site.System().Queueless {
		return graceHere
	}
	return graceThere
}

// phase sets the progress of a pilot, from its glidein's last attempt. Times count from began.
func phase(q *revision.Pilot, g corral.Glidein, began time.Time) {
	if len(g.Attempts) > 0 {
		a := g.Attempts[len(g.Attempts)-1]
		if !a.SubmittedAt.IsZero() {
			q.Submit, q.Phase = corral.Seconds(max(0, a.SubmittedAt.Sub(began))), revision.Queued
		}
		if !a.StartedAt.IsZero() {
			q.Began, q.Phase = max(0, a.StartedAt.Sub(began)), revision.Booting
		}
		if a.Workers > 0 {
			q.Phase = revision.Working
		}
		if !a.Live() {
			q.Ended, q.Phase = a.EndedAt.Sub(began), revision.Gone
		}
	}
	switch {
	case g.State.Terminal():
		q.Phase = revision.Gone
		q.Ended = max(q.Ended, q.Began)
	case g.Asked != corral.AskNothing && q.Phase < revision.Booting:
		q.Phase = revision.Gone
	case g.Asked != corral.AskNothing && q.Phase < revision.Gone:
		q.Phase = revision.Leaving
	}
}

// others returns what a glidein costs beside its last attempt, which is pilot q: its earlier attempts, and one that may
// follow if the last has ended.
func others(q revision.Pilot, g corral.Glidein, began time.Time) (all []revision.Pilot) {
	for i, a := range g.Attempts {
		last := i == len(g.Attempts)-1
		one := q
		switch {
		case last && a.Live() || last && (g.State.Terminal() || g.Asked != corral.AskNothing):
			continue
		case last:
			one.Phase, one.Began, one.Ended = revision.Queued, -1, -1
		case a.StartedAt.IsZero():
			continue
		default:
			one.Began, one.Ended, one.Phase = max(0, a.StartedAt.Sub(began)), -1, revision.Leaving
			if !a.Live() {
				one.Ended, one.Phase = a.EndedAt.Sub(began), revision.Gone
			}
		}
		all = append(all, one)
	}
	return all
}

// allocations ends pilots at sites whose allocations would otherwise be exceeded before the next check, which follows
// after the given pause, takes effect. It reports whether any site has an allocation and pilots.
func (r *Reviser) allocations(ctx context.Context, pause time.Duration) (busy bool, err error) {
	sites, err := store.ReadWhole(ctx, r.db, (*store.WholeTx).SitesToServe)
	for _, site := range sites {
		if site.Allocation == "" {
			continue
		}
		live, failed := r.allocation(ctx, site, horizon(pause, r.took))
		busy, err = busy || live, errors.Join(err, failed)
	}
	return busy, err
}

// allocation keeps the allocation of one site until the next decision, at most the given period from now.
func (r *Reviser) allocation(ctx context.Context, site corral.Site, period time.Duration) (live bool, err error) {
	owner := r.db.Owner(site.Owner)
	drops := func(tx *store.Tx) ([]corral.GlideinID, error) {
		v, err := allotment(tx, site)
		live, v.Period = len(v.Pilots) > 0, period
		var all []corral.GlideinID
		for _, d := range revision.Guard(v) {
			all = append(all, corral.GlideinID(d.Pilot))
		}
		return all, err
	}
	if all, err := store.Read(ctx, owner, drops); err != nil || len(all) == 0 {
		return live, err
	}
	return live, owner.Write(ctx, store.Actor, func(tx *store.Tx) error {
		all, err := drops(tx)
		for _, id := range all {
			if err == nil {
				_, err = tx.AskGlidein(id, corral.AskCancel, fmt.Sprintf("the allocation of site %s, %s, is used up",
					site.Name, site.Allocation))
			}
		}
		return err
	})
}

// allotment returns a view of the live pilots of a site, with their ids as numbers, whose budget is what pilots that
// are over have left of the site's allocation. Its time begins with the first of the pilots.
func allotment(tx *store.Tx, site corral.Site) (v revision.View, err error) {
	tariff, allocation, err := cost.TermsOf(site.Terms())
	if err != nil || allocation == nil {
		return v, err
	}
	l, err := tx.Ledger(site.ID)
	if err != nil {
		return v, err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID, Live: true})
	began := tx.Now()
	for _, g := range glideins {
		for _, a := range g.Attempts {
			if !a.StartedAt.IsZero() && a.StartedAt.Before(began) {
				began = a.StartedAt
			}
		}
	}
	f := Facts{Site: site}
	if err == nil {
		f.Waits, err = tx.Waits(store.WaitFilter{Site: site.ID, Last: latestPilots})
	}
	v.Now, v.Grace = tx.Now().Sub(began), f.grace()
	left := allocation.Plus(-l.Statement().Billed)
	for _, g := range glideins {
		q := revision.Pilot{Pilot: plan.Pilot{Site: site.Name, Shape: g.Shape}, Number: int(g.ID), Began: -1, Ended: -1,
			Tariff: plan.Tariff(tariff), Cancelled: g.Asked == corral.AskCancel}
		if !g.NotBefore.IsZero() {
			q.Submit = corral.Seconds(g.NotBefore.Sub(began))
		}
		phase(&q, g, began)
		v.Pilots, v.Beside = append(v.Pilots, q), append(v.Beside, others(q, g, began)...)
	}
	left = left.Plus(revision.Spent(v))
	v.Goal.Budget = &cost.Amount{Money: max(0, left), Unit: tariff.Rate.Unit}
	return v, err
}
