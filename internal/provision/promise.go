package provision

import (
	"context"
	"encoding/json"
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

// read returns what a plan promised. A document of many tasks is large, and takes longer to read than all else that a
// look reads; but it never changes. So it is read once.
func (r *Reviser) read(ctx context.Context, id corral.PlanID) (promise, error) {
	if said, ok := r.said[id]; ok {
		return said, nil
	}
	row, err := store.Read(ctx, r.db, func(tx *store.Tx) (corral.Plan, error) { return tx.Plan(id) })
	if err != nil {
		return promise{}, err
	}
	said, err := promised(r.db, row)
	if err == nil {
		r.said[id] = said
	}
	return said, err
}

// Runtimes returns how long tasks take, by their ids, where a plan has placed them.
func Runtimes(db *store.DB, row corral.Plan) (map[string]time.Duration, error) {
	said, err := promised(db, row)
	return said.runtimes, err
}

// promised reads a plan's document, and its schedule where that lies apart.
func promised(db *store.DB, row corral.Plan) (said promise, err error) {
	if err := json.Unmarshal(row.Document, &said.document); err != nil {
		return said, fmt.Errorf("reading plan %d: %w", row.ID, err)
	}
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

// forget drops the promises of plans that are no longer under way.
func (r *Reviser) forget(all []underway) {
	maps.DeleteFunc(r.said, func(id corral.PlanID, _ promise) bool {
		return !slices.ContainsFunc(all, func(u underway) bool { return u.plan.ID == id })
	})
}
