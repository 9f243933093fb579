package provision

import (
	"context"
	"encoding/json"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/hedge"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// Hedges is what withdraws pilots. It knows of which plans it has to look: a plan's document never changes, and most
// hedge nothing.
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
				_, err = tx.AskGlidein(w.Glidein, w.Ask, w.Reason)
			}
		}
		return err
	})
}

// find lists what is to go now.
func (h hedges) find(tx *store.Tx) (all []hedge.Withdrawal, err error) {
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
			if err == nil {
				h.is[p.ID] = len(plan.Hedged(document.Pilots)) < len(document.Pilots)
			}
		}
		if err == nil && h.is[p.ID] {
			glideins, failed := tx.Glideins(store.GlideinFilter{Labels: labelled(p), InBrief: true})
			all, err = append(all, hedge.Withdrawals(glideins)...), failed
		}
	}
	return all, err
}
