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

// Runtimes returns the estimates that a plan was made with, by the ids of its tasks, if a run has the label of a plan.
// If there is no such plan, or its schedule was deleted with it, they are nil. A schedule may take as much memory as
// the workflow, so call Runtimes before the workflow is parsed.
func Runtimes(ctx context.Context, db *store.DB, labels map[string]string) (map[string]time.Duration, error) {
	id, err := strconv.ParseInt(labels[corral.PlanLabel], 10, 64)
	if err != nil {
		return nil, nil // the label names no plan
	}
	row, err := store.Read(ctx, db.Request(ctx), func(tx *store.Tx) (corral.Plan, error) {
		return tx.Plan(corral.PlanID(id))
	})
	var runtimes map[string]time.Duration
	if err == nil {
		runtimes, err = provision.Runtimes(db, row)
	}
	if corral.KindOf(err) == corral.NotFound {
		return nil, nil
	}
	return runtimes, err
}

// AsPlanned gives the tasks of a run the estimates that its plan was made with, wherever those came from: what a worker
// starts before its pilot leaves, and what becomes of the plan, is then judged by what its pilots were asked for. It
// removes the text of the workflow from the request if it changes flow. If the plan was made for other tasks, both stay
// unchanged.
func AsPlanned(in *api.NewRun, flow *workflow.Workflow, runtimes map[string]time.Duration) {
	if estimate(flow, runtimes) {
		in.Workflow = nil
	}
}

// estimate gives tasks the runtimes that they were planned with, and reports whether any is another one. Tasks that
// were not planned have theirs.
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
			t.Estimate, changed = max(d, time.Millisecond), true // 0 is none
		}
	}
	return changed
}
