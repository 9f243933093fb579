package planning

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/workflow"
)

// Runtimes returns the estimates with which a run's plan was made, by task id. The labels of the run name the plan. If
// there is no such plan, or its schedule was deleted with it, Runtimes returns nil. A schedule may take as much memory
// as the workflow, so call Runtimes before the workflow is parsed.
func Runtimes(ctx context.Context, db *store.DB, labels map[string]string) (map[string]time.Duration, error) {
	id, named := planOf(labels)
	if !named {
		return nil, nil
	}
	row, err := store.Read(ctx, db.Request(ctx), func(tx *store.Tx) (corral.Plan, error) { return tx.Plan(id) })
	var runtimes map[string]time.Duration
	if err == nil {
		runtimes, err = provision.Runtimes(db, row)
	}
	if corral.KindOf(err) == corral.NotFound {
		return nil, nil
	}
	return runtimes, err
}

// planOf returns the plan that the labels of a run name.
func planOf(labels map[string]string) (id corral.PlanID, named bool) {
	n, err := strconv.ParseInt(labels[corral.PlanLabel], 10, 64)
	return corral.PlanID(n), err == nil
}

// AsPlanned sets the estimates of a run's tasks to those with which its plan was made, regardless of their origin.
// Decisions about the tasks that a worker starts before its pilot leaves, and about revisions of the plan, are then
// based on the same estimates as the pilots. If it changes flow, it removes the workflow's text from the request. If
// the plan was made for other tasks, both remain unchanged.
func AsPlanned(in *api.NewRun, flow *workflow.Workflow, runtimes map[string]time.Duration) {
	if estimate(flow, runtimes) {
		in.Workflow = nil
	}
}

// estimate sets the estimates of tasks to the planned runtimes, and reports whether any changed. It changes nothing
// unless the plan was made for exactly these tasks.
func estimate(flow *workflow.Workflow, runtimes map[string]time.Duration) (changed bool) {
	if len(runtimes) != len(flow.Tasks) || slices.ContainsFunc(flow.Tasks, func(t workflow.Task) bool {
		_, planned := runtimes[t.ID]
		return !planned
	}) {
		return false
	}
	for i := range flow.Tasks {
		t := &flow.Tasks[i]
		d := runtimes[t.ID]
		if known, ok := t.Estimated(); !ok || known != d {
			t.Estimate, changed = max(d, time.Millisecond), true // 0 means no estimate
		}
	}
	return changed
}
