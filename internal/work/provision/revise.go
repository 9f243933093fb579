package provision

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// carryOut records a decision as a revision, in one transaction with the glideins that it creates and releases; the
// engine does the rest. It returns the decision that holds: d.Refused if the pilots to add were not requested. A
// decision based on outdated state has no effect, because another decision follows soon.
func (r *Reviser) carryOut(ctx context.Context, s sight, v revision.View, d revision.Decision) (kept revision.Decision,
	err error) {
	without := d // what holds if the pilots to add are not requested
	if d.Refused != nil {
		without = *d.Refused
	}
	kept = without
	var made corral.Revision
	err = r.db.Owner(s.plan.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
		p, err := tx.PlanRow(s.plan.ID)
		if err != nil || p.State != corral.PlanProvisioned {
			return err
		}
		latest, err := tx.LatestRevision(p.ID)
		if err != nil || latest != v.Before.Number {
			return err
		}
		c := change{tx: tx, sight: s, number: latest + 1}
		dropped, err := c.drop(d.Drop, r.workers)
		if err != nil {
			return err
		}
		add, refused, err := c.affordable(d.Add)
		if err != nil {
			return err
		}
		if kept = d; len(refused) > 0 {
			kept = without
			kept.Reasons = append(slices.Clip(kept.Reasons), fmt.Sprintf("%d pilot(s) cannot be requested", len(d.Add)))
		}
		text := corral.RevisionText{Reasons: kept.Reasons, Limits: append(slices.Clip(d.Limits), refused...),
			News: string(kept.News), Dropped: dropped, End: corral.Seconds(kept.Predicted.End),
			Complete: kept.Predicted.Complete, Cost: amount(s, kept)}
		if text.Added, err = c.add(add, r.machine); err != nil {
			return err
		}
		if len(text.Added)+len(text.Dropped) == 0 && text.News == "" {
			return nil
		}
		if text.News != "" {
			if err = tx.NoteNews(s.run.ID, text.News, strings.Join(text.Why(), "; ")); err != nil {
				return err
			}
		}
		made, err = tx.RevisePlan(p.ID, text)
		return err
	})
	if err == nil && made.Number > 0 {
		r.lg.Info("plan revised", "plan", made.Plan, "revision", made.Number, "added", len(made.Added),
			"dropped", len(made.Dropped), "reason", strings.Join(made.Reasons, "; "))
	}
	return kept, err
}

// amount returns the plan's predicted cost in the format of --budget.
func amount(s sight, d revision.Decision) string {
	return cost.Amount{Money: d.Predicted.Cost, Unit: s.document.Cost.Unit}.String()
}

// A change is a revision being written.
type change struct {
	tx     *store.Tx
	sight  sight
	number int // the number of the revision
}

// drop releases pilots. A pilot that was to be released because it was idle remains if it has a task by now.
func (c change) drop(drops []revision.Drop, workers Workers) (all []corral.PilotChange, err error) {
	for _, d := range drops {
		i := slices.IndexFunc(c.sight.glideins, func(g corral.Glidein) bool {
			number, err := strconv.Atoi(g.Labels["pilot"])
			return err == nil && number == d.Pilot
		})
		g := c.sight.glideins[i]
		now := c.sight
		if d.Idle {
			if now.workers = workers.Workers(now.plan.Cluster); now.busy()[g.ID] {
				continue
			}
		}
		ask := corral.AskDrain
		if d.Cancel {
			ask = corral.AskCancel
		}
		reason := fmt.Sprintf("revision %d of plan %d: %s", c.number, c.sight.plan.ID, d.Why)
		if _, err = c.tx.AskGlidein(g.ID, ask, reason); err != nil {
			return nil, err
		}
		all = append(all, corral.PilotChange{Pilot: d.Pilot, Glidein: g.ID, Site: g.SiteName, Hosts: g.Hosts,
			CPUs: g.CPUs, Ask: ask, Why: string(d.Why)})
	}
	return all, nil
}

// affordable returns the pilots to add, if the balances of their sites and the limits of the plan's owner allow all of
// them, and the owner is not suspended. Otherwise it returns no pilots, and the limit, which the revision lists; the
// rest of the decision remains valid.
func (c change) affordable(pilots []plan.Pilot) (add []plan.Pilot, refused []string, err error) {
	refusal, err := c.tx.Refusal(c.sight.plan.Owner)
	if err != nil || refusal != "" && len(pilots) > 0 {
		return nil, []string{refusal}, err
	}
	err = admit.Pilots(c.tx, c.sight.plan, pilots, c.sight.at())
	switch corral.KindOf(err) {
	case corral.Conflict, corral.Forbidden, corral.Unsatisfiable:
		return nil, []string{err.Error()}, nil
	}
	return pilots, nil, err
}

// add requests pilots. Their numbers follow those of the plan's existing pilots: no number is used twice, so that no
// pilot is requested twice.
func (c change) add(pilots []plan.Pilot, machine corral.SiteQueue) (all []corral.PilotChange, err error) {
	there, err := c.tx.Glideins(store.GlideinFilter{Filter: store.Filter{All: true}, Labels: labelled(c.sight.plan)})
	if err != nil {
		return nil, err
	}
	next := 0
	for _, g := range there {
		if n, err := strconv.Atoi(g.Labels["pilot"]); err == nil {
			next = max(next, n+1)
		}
	}
	made, err := ask(c.tx, c.sight.plan, pilots, asking{at: c.sight.at(), speed: c.sight.document.SpeedAt, first: next,
		machine: machine, why: fmt.Sprintf(", added by revision %d", c.number)})
	for i, g := range made {
		all = append(all, corral.PilotChange{Pilot: next + i, Glidein: g.ID, Site: g.SiteName, Hosts: g.Hosts,
			CPUs: g.CPUs})
	}
	return all, err
}
