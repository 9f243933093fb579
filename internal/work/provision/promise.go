package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// A promise is what a plan's document said, as far as revisions ask for it.
type promise struct {
	document plan.Plan                // without the place and time of each task
	runtimes map[string]time.Duration // :: task → estimate that the plan was made with
}

// readAgain is after how long a plan is read again that could not be read.
const readAgain = time.Minute

// read returns what a plan promised. A document of many tasks is large, and takes longer to read than all else that a
// look reads; but it never changes. So it is read once. If it cannot be read, that is said once, and it is not ok.
func (r *Reviser) read(ctx context.Context, of corral.Plan, now time.Time) (said promise, ok bool) {
	id := of.ID
	if said, ok := r.said[id]; ok {
		return said, true
	}
	failed, again := r.unread[id]
	if again && now.Sub(failed) < readAgain {
		return promise{}, false
	}
	row, err := store.Read(ctx, r.db.Owner(of.Owner), func(tx *store.Tx) (corral.Plan, error) { return tx.Plan(id) })
	if err == nil {
		said, err = promised(r.db, row)
	}
	switch {
	case err == nil:
		r.said[id] = said
	case ctx.Err() == nil:
		r.unread[id] = now
		if !again {
			r.lg.Error("a plan cannot be read, and is not revised: it is tried again each minute", "plan", id,
				"error", err)
		}
	}
	return said, err == nil
}

// Runtimes returns how long tasks take, by their ids, where a plan has placed them.
func Runtimes(db *store.DB, row corral.Plan) (map[string]time.Duration, error) {
	said, err := promised(db, row)
	return said.runtimes, err
}

// promised reads a plan's document, and its schedule where that lies apart.
func promised(db *store.DB, row corral.Plan) (said promise, err error) {
	document, err := plan.Decode(row)
	if err != nil {
		return said, err
	}
	said.document = *document
	if !said.document.Whole() {
		lines, err := db.Schedule(row)
		if err == nil {
			defer lines.Close()
			err = said.document.Attach(lines)
		}
		if err != nil {
			return said, fmt.Errorf("reading plan %d: %w", row.ID, err)
		}
	}
	said.runtimes = said.document.Durations()
	said.document.Schedule = nil
	return said, nil
}

// forget drops what is known of the promises of plans that are no longer under way.
func (r *Reviser) forget(all []underway) {
	over := func(id corral.PlanID) bool {
		return !slices.ContainsFunc(all, func(u underway) bool { return u.plan.ID == id })
	}
	maps.DeleteFunc(r.said, func(id corral.PlanID, _ promise) bool { return over(id) })
	maps.DeleteFunc(r.unread, func(id corral.PlanID, _ time.Time) bool { return over(id) })
}
