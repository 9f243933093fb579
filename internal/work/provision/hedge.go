package provision

import (
	"context"
	"errors"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/hedging"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// hedges withdraws pilots. It remembers which plans contain hedges, because a plan's document never changes and most
// plans contain no hedges.
type hedges struct {
	db *store.DB
	is map[corral.PlanID]bool
}

// withdraw carries out the withdrawals of all plans whose pilots have been requested. Most checks find no pilots to
// withdraw, and only read the store.
func (h hedges) withdraw(ctx context.Context) error {
	var due []corral.Plan
	err := h.db.Whole().View(ctx, func(tx *store.WholeTx) error {
		plans, err := tx.Provisioned()
		for _, p := range plans {
			now, failed := h.find(tx.Owner(p.Owner), p)
			err = errors.Join(err, failed)
			if len(now) > 0 {
				due = append(due, p)
			}
		}
		return err
	})
	for _, p := range due {
		err = errors.Join(err, h.db.Owner(p.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
			now, err := h.find(tx, p)
			for _, w := range now {
				if err == nil {
					_, err = tx.AskGlidein(w.Glidein, w.Ask, w.Reason)
				}
			}
			return err
		}))
	}
	return err
}

// find lists the pilots of a plan to withdraw now.
func (h hedges) find(tx *store.Tx, p corral.Plan) ([]hedging.Withdrawal, error) {
	if _, known := h.is[p.ID]; !known {
		row, err := tx.Plan(p.ID)
		if err != nil {
			return nil, err
		}
		whole, err := plan.Decode(row)
		if err != nil {
			return nil, err
		}
		h.is[p.ID] = len(plan.Hedged(whole.Pilots)) < len(whole.Pilots)
	}
	if !h.is[p.ID] {
		return nil, nil
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Labels: labelled(p), InBrief: true})
	return hedging.Withdrawals(glideins), err
}
