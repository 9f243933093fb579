package provision

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Release lets the glideins of a plan go, within the transaction that moves the plan: workers finish what they run, and
// pilots that have not been asked for are not. What each may cost stays reserved until it is over. A plan that is
// released stays as it is.
func Release(tx *store.Tx, p corral.Plan, reason string) (corral.Plan, error) {
	if p.State == corral.PlanReleased {
		return p, nil
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Labels: labelled(p)})
	for _, g := range glideins {
		if err == nil && !g.State.Terminal() {
			_, err = tx.AskGlidein(g.ID, corral.AskDrain, fmt.Sprintf("plan %d was released: %s", p.ID, reason))
		}
	}
	if err != nil {
		return p, err
	}
	return tx.MovePlan(p.ID, corral.PlanRelease, reason)
}

// overReason is why a plan is released that nobody asked to release.
const overReason = "its run is over"

// labelled is the label of what belongs to a plan: its glideins, and the run that it was made for.
func labelled(p corral.Plan) map[string]string {
	return map[string]string{Label: strconv.FormatInt(int64(p.ID), 10)}
}

// Keep releases each plan when the runs that were made for it are over, until ctx ends. A plan without a run is left
// alone: it was provisioned by a person, who releases it. Keep looks at the store whenever a run changes, and first at
// its start, so that what ended while no corrald ran is released as well.
func Keep(ctx context.Context, lg *slog.Logger, db *store.DB) error {
	for {
		changed := db.Changed(store.Subject{Object: corral.ObjectRun})
		if err := releaseEnded(ctx, db); err != nil && ctx.Err() == nil {
			lg.Error("releasing plans: it is tried again at the next change of a run", "error", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// releaseEnded releases the plans whose runs are over. Most looks find none, and only read.
func releaseEnded(ctx context.Context, db *store.DB) error {
	var ended []corral.Plan
	err := db.View(ctx, func(tx *store.Tx) error {
		plans, err := tx.Provisioned()
		for _, p := range plans {
			var over bool
			if err == nil {
				over, err = hasEnded(tx, p)
			}
			if over {
				ended = append(ended, p)
			}
		}
		return err
	})
	if err != nil || len(ended) == 0 {
		return err
	}
	return db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		for _, p := range ended {
			over, err := hasEnded(tx, p) // it may have been resumed meanwhile
			if err == nil && over {
				_, err = Release(tx, p, overReason)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// hasEnded reports whether a plan has runs, and all of them are over.
func hasEnded(tx *store.Tx, p corral.Plan) (bool, error) {
	runs, err := tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labelled(p)})
	for _, r := range runs {
		if !r.State.Over() {
			return false, err
		}
	}
	return len(runs) > 0, err
}
