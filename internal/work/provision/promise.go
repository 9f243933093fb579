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

// A promise holds the parts of a plan's document that revisions need.
type promise struct {
	document plan.Plan                // without the schedule of the tasks
	runtimes map[string]time.Duration // :: task → its estimate, on the fastest hosts; nil: only its document was read
	firsts   map[int]first            // :: number of a pilot → its first tasks, unless it is submitted at once
}

// first holds the tasks that are planned to start first on a pilot.
type first struct {
	tasks  []string
	submit time.Duration // of the pilot, from the plan's beginning
	lead   time.Duration // planned time from then to the start of the tasks
}

// readAgain is the delay before an unreadable plan is read again.
const readAgain = time.Minute

// read returns a plan's promise. The document of a plan with many tasks is large, and reading it takes longer than
// reading all other data of a check; but the document never changes, so it is read once, and its schedule only once
// the plan has a run. If it cannot be read, one log entry reports the problem, and ok is false.
func (r *Reviser) read(ctx context.Context, u underway, now time.Time) (said promise, ok bool) {
	id, working := u.plan.ID, u.run.ID != 0
	if said, ok := r.said[id]; ok && (said.runtimes != nil || !working) {
		return said, true
	}
	failed, again := r.unread[id]
	if again && now.Sub(failed) < readAgain {
		return promise{}, false
	}
	row, err := store.Read(ctx, r.db.Owner(u.plan.Owner),
		func(tx *store.Tx) (corral.Plan, error) { return tx.Plan(id) })
	if err == nil {
		said, err = promised(r.db, row, working)
	}
	switch {
	case err == nil:
		r.said[id] = said
	case ctx.Err() == nil:
		r.unread[id] = now
		if !again {
			r.lg.Error("a plan cannot be read and is not revised; retrying every minute", "plan", id,
				"error", err)
		}
	}
	return said, err == nil
}

// Runtimes returns the estimates with which a plan was made, by task, for the fastest hosts.
func Runtimes(db *store.DB, row corral.Plan) (map[string]time.Duration, error) {
	said, err := promised(db, row, true)
	return said.runtimes, err
}

// promised reads a plan's document and, with its runtimes, the schedule if that is stored separately.
func promised(db *store.DB, row corral.Plan, runtimes bool) (said promise, err error) {
	document, err := plan.Decode(row)
	if err != nil {
		return said, err
	}
	said.document = *document
	if !runtimes {
		said.document.Schedule = nil
		return said, nil
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
	said.runtimes, said.firsts = said.document.Runtimes(), firstsOf(row, &said.document)
	said.document.Schedule = nil
	return said, nil
}

// firstsOf returns the first tasks of the pilots of a plan that are not submitted at once. A pilot that hedges another
// waits for the same tasks.
func firstsOf(row corral.Plan, p *plan.Plan) map[int]first {
	all, tasks := map[int]first{}, p.Firsts()
	for k, q := range p.Pilots {
		f := tasks[k]
		if q.Hedges != nil && *q.Hedges >= 0 && *q.Hedges < k {
			f = tasks[*q.Hedges]
		}
		if q.Submit == 0 || q.Follows != nil || len(f.Tasks) == 0 {
			continue
		}
		one := first{submit: time.Duration(q.Submit - sooner(row, p)), lead: time.Duration(f.Start - q.Submit)}
		for _, at := range f.Tasks {
			one.tasks = append(one.tasks, at.ID)
		}
		all[k] = one
	}
	return all
}

// forget removes the promises of plans that are no longer in progress, and the expected ends of their runs.
func (r *Reviser) forget(all []underway) {
	maps.DeleteFunc(r.runsOf, func(id corral.RunID, _ bool) bool {
		over := !slices.ContainsFunc(all, func(u underway) bool { return u.run.ID == id })
		if over {
			r.runs.Expect(id, time.Time{}, false)
		}
		return over
	})
	over := func(id corral.PlanID) bool {
		return !slices.ContainsFunc(all, func(u underway) bool { return u.plan.ID == id })
	}
	maps.DeleteFunc(r.said, func(id corral.PlanID, _ promise) bool { return over(id) })
	maps.DeleteFunc(r.budgets, func(id corral.PlanID, _ bool) bool { return over(id) })
	for _, times := range []map[corral.PlanID]time.Time{r.unread, r.unpaced, r.stuck} {
		maps.DeleteFunc(times, func(id corral.PlanID, _ time.Time) bool { return over(id) })
	}
}
