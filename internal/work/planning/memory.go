package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// Remember raises the memory of a requested run's tasks to what earlier runs of the workflow have learned, see
// remembered. The run of a plan that was made without earlier runs remains unchanged. If Remember changes flow, it
// removes the workflow's text from the request.
func Remember(ctx context.Context, db *store.DB, owner string, in *api.NewRun, flow *workflow.Workflow) error {
	if id, named := planOf(in.Labels); named {
		without, err := store.Read(ctx, db.Request(ctx), func(tx *store.Tx) (bool, error) {
			return tx.LearnsNothing(id)
		})
		if err != nil || without {
			return err
		}
	}
	raised, err := remembered(ctx, db, owner, flow)
	if len(raised) > 0 {
		in.Workflow = nil
	}
	return err
}

// remembered raises the memory of tasks to that with which the latest run of the owner's workflow of the same name
// would begin tasks of their transformations, because some of its tasks were killed for their memory. A task without a
// request keeps its share of its worker, which may be more. remembered returns a sentence about each transformation
// that it changed.
func remembered(ctx context.Context, db *store.DB, owner string, flow *workflow.Workflow) (raised []string, err error) {
	rows, err := store.Read(ctx, db.Request(ctx), func(tx *store.Tx) ([]corral.Run, error) {
		return tx.LearnedRuns(owner, flow.Name, mostLearned)
	})
	learned := map[string]corral.LearnedMemory{}
	from := map[string]corral.RunID{}
	for _, r := range rows { // the latest is the last
		for _, m := range r.Report.LearnedMemory {
			learned[m.Transformation], from[m.Transformation] = m, r.ID
		}
	}
	if err != nil || len(learned) == 0 {
		return nil, err
	}
	said := map[string]string{}
	for i, task := range profile.Tasks(flow) {
		t, name := &flow.Tasks[i], task.Transformation
		if m := learned[name]; t.MemoryMiB > 0 && m.MemoryMiB > t.MemoryMiB {
			t.MemoryMiB = m.MemoryMiB
			said[name] = fmt.Sprintf("tasks of %s begin with %d MiB: run %d learned this when some were killed for "+
				"their memory", name, m.MemoryMiB, from[name])
		}
	}
	return slices.Sorted(maps.Values(said)), nil
}
