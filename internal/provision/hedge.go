package provision

// Hedged pilots are pairs of glideins of one plan at two sites. What tells them is a label, which the store keeps as it
// keeps the pilot's number: nothing else about a glidein is different, and whoever looks at one sees what it is. The
// decision is made again from the store whenever a glidein has changed, so that nothing is lost with a corrald that is
// killed between a worker's registration and the withdrawal.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// hedgesLabel is the label by which a glidein of a plan says which pilot of it it hedges: that one's number.
const hedgesLabel = "hedges"

// A withdrawal lets a glidein go because the one that it hedges, or that hedges it, has its workers.
type withdrawal struct {
	glidein corral.GlideinID
	ask     corral.Ask
	reason  string
}

// withdrawals decides which of a plan's glideins are to go: of a pair, once workers of one have come, the other. One
// that still waits, or comes up, is cancelled; one whose workers came meanwhile is drained, since it may have a task.
// If both have workers the one that hedges goes. One that has ended withdraws nothing any more: the other is its
// replacement then.
func withdrawals(glideins []corral.Glidein) (all []withdrawal) {
	number := byNumber(glideins)
	for _, twin := range glideins {
		hedged, ok := number[twin.Labels[hedgesLabel]]
		if twin.Labels[hedgesLabel] == "" || !ok {
			continue
		}
		winner, loser := hedged, twin
		if workersOf(hedged) == 0 {
			winner, loser = twin, hedged
		}
		if workersOf(winner) == 0 || loser.State.Terminal() || loser.Asked != corral.AskNothing {
			continue
		}
		w := withdrawal{loser.ID, corral.AskCancel, fmt.Sprintf("glidein %d at site %s, which it was asked for "+
			"beside, came first", winner.ID, winner.SiteName)}
		if workersOf(loser) > 0 {
			w.ask = corral.AskDrain
		}
		all = append(all, w)
	}
	return all
}

// seconds are the glideins that revisions do not count: of a pair one will work, which is the one that has its workers,
// or else the one that was planned, unless that is over.
func seconds(glideins []corral.Glidein) map[corral.GlideinID]bool {
	number := byNumber(glideins)
	all := map[corral.GlideinID]bool{}
	for _, twin := range glideins {
		hedged, ok := number[twin.Labels[hedgesLabel]]
		switch {
		case twin.Labels[hedgesLabel] == "" || !ok:
		case workersOf(twin) > 0 && workersOf(hedged) == 0, hedged.State.Terminal():
			all[hedged.ID] = !hedged.State.Terminal() // what is over has been, and costs
		default:
			all[twin.ID] = true
		}
	}
	return all
}

func byNumber(glideins []corral.Glidein) map[string]corral.Glidein {
	number := map[string]corral.Glidein{}
	for _, g := range glideins {
		number[g.Labels["pilot"]] = g
	}
	return number
}

// workersOf is how many workers the live attempt of a glidein has.
func workersOf(g corral.Glidein) int {
	if n := len(g.Attempts); n > 0 && g.Attempts[n-1].Live() {
		return g.Attempts[n-1].Workers
	}
	return 0
}

// Hedges withdraws pilots. It knows of which plans it has to look: a plan's document never changes, and most hedge
// nothing.
type hedges struct {
	db *store.DB
	is map[corral.PlanID]bool
}

// withdraw carries out the withdrawals of all plans whose pilots are asked for. Most looks find none, and only read.
func (h hedges) withdraw(ctx context.Context) error {
	if due, err := store.Read(ctx, h.db, h.find); err != nil || len(due) == 0 {
		return err
	}
	return h.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		all, err := h.find(tx)
		for _, w := range all {
			if err == nil {
				_, err = tx.AskGlidein(w.glidein, w.ask, w.reason)
			}
		}
		return err
	})
}

// find lists what is to go now.
func (h hedges) find(tx *store.Tx) (all []withdrawal, err error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if err != nil {
			break
		}
		if _, known := h.is[p.ID]; !known {
			var document plan.Plan
			if p, err = tx.Plan(p.ID); err == nil {
				err = json.Unmarshal(p.Document, &document)
			}
			h.is[p.ID] = len(plan.Hedged(document.Pilots)) < len(document.Pilots)
		}
		if err == nil && h.is[p.ID] {
			glideins, failed := tx.Glideins(store.GlideinFilter{Labels: labelled(p), InBrief: true})
			all, err = append(all, withdrawals(glideins)...), failed
		}
	}
	return all, err
}
