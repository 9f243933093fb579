package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Release releases the glideins of a plan, within the transaction that changes the plan's state: workers finish their
// running tasks, and pilots that have not been submitted never will be. The possible cost of each pilot remains
// reserved until the pilot has ended. A plan that is already released remains unchanged.
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

// The reasons for which corrald releases a plan without a request.
const (
	overReason   = "its run is over"
	orphanReason = "no run of it was made"
	goneReason   = "all of its pilots have ended"
)

// orphanAge is how long a plan that was made for one run may exist without that run before it is released: the client
// that should have created the run is presumably gone.
const orphanAge = 2 * time.Minute

// labelled returns the label of a plan's objects: its glideins, and the run for which it was made.
func labelled(p corral.Plan) map[string]string {
	return map[string]string{corral.PlanLabel: strconv.FormatInt(int64(p.ID), 10)}
}

// Until ctx ends, Keep withdraws hedges once the other pilot is present, and releases each plan when the runs that were
// made for it are over, or when all of its pilots have ended and no revision will request others. Any other plan
// without a run is left alone: a user provisioned the plan and will release it, unless the plan belongs to corral run
// --auto, whose run follows at once. Keep checks the store when it starts, whenever a run or a glidein changes, and
// every minute, so that plans whose runs ended while corrald was not running are released as well.
func Keep(ctx context.Context, lg *slog.Logger, db *store.DB) error {
	pairs := hedges{db, map[corral.PlanID]bool{}}
	for {
		changed := db.Changed(store.Subject{Object: corral.ObjectRun})
		left := db.Changed(store.Subject{Object: corral.ObjectGlidein})
		if err := errors.Join(releaseEnded(ctx, db), pairs.withdraw(ctx)); err != nil && ctx.Err() == nil {
			lg.Error("releasing plans and their pilots failed; retrying within a minute", "error", err)
		}
		select {
		case <-changed:
		case <-left:
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return nil
		}
	}
}

// releaseEnded releases the plans whose runs are over. Most checks find no such plan, and only read the store.
func releaseEnded(ctx context.Context, db *store.DB) error {
	var ended []corral.Plan
	err := db.Whole().View(ctx, func(tx *store.WholeTx) error {
		plans, err := tx.Provisioned()
		for _, p := range plans {
			reason, failed := outlived(tx.Owner(p.Owner), p)
			err = errors.Join(err, failed)
			if reason != "" {
				ended = append(ended, p)
			}
		}
		return err
	})
	// A plan that cannot be read or released does not affect the others.
	for _, p := range ended {
		err = errors.Join(err, db.Owner(p.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
			reason, err := outlived(tx, p) // a run may have been resumed in the meantime
			if err == nil && reason != "" {
				_, err = Release(tx, p, reason)
			}
			return err
		}))
	}
	return err
}

// outlived returns the reason why a plan's pilots are no longer needed, or "" if they are. The reason is that no pilot
// is left and none will follow, that the plan has runs and all of them are over, or that no run was created.
func outlived(tx *store.Tx, p corral.Plan) (reason string, err error) {
	if !p.Auto {
		all, live, err := tx.PilotsOf(p.ID)
		if err != nil {
			return "", err
		}
		if all > 0 && live == 0 {
			return goneReason, nil
		}
	}
	runs, err := tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labelled(p)})
	for _, r := range runs {
		if !r.State.Over() {
			return "", err
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(runs) > 0:
		return overReason, nil
	case p.Auto && time.Since(p.BeganAt) > orphanAge:
		return orphanReason, nil
	}
	return "", nil
}

// ReleaseOver releases the plans that are selected by wanted and whose runs are over, so that the caller's next action
// cannot revive any of them. It stops at the first plan that still requests workers, and returns that plan's id: the
// plan's run is in progress, or does not exist yet, as between the two requests of corral run --auto. It returns 0 if
// there is no such plan.
func ReleaseOver(tx *store.Tx, wanted func(corral.Plan) bool) (corral.PlanID, error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if err != nil || !wanted(p) {
			continue
		}
		var reason string
		if reason, err = outlived(tx, p); err == nil && reason == "" {
			return p.ID, nil
		}
		if err == nil {
			_, err = Release(tx, p, reason)
		}
	}
	return 0, err
}
