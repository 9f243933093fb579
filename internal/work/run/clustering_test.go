package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// TestClusterings: the option determines how tasks are released in jobs.
func TestClusterings(t *testing.T) {
	t.Parallel()
	tasks := []spec{{ID: "a", Seconds: 60}, {ID: "b", Seconds: 60, After: []string{"a"}}, {ID: "c", Seconds: 30},
		{ID: "d", Seconds: 30}, {ID: "e", Seconds: 60}}
	for clustering, want := range map[string][]string{
		"none":         {"[a]", "[c]", "[d]", "[e]"},
		"horizontal=1": {"[a c d e]"},
		"runtime=60s":  {"[a]", "[c d]", "[e]"},
		"vertical":     {"[a b]", "[c]", "[d]", "[e]"},
		"label":        {"[a]", "[c]", "[d]", "[e]"},
	} {
		p := mustPlan(t, corral.RunOptions{Clustering: clustering}, tasks...)
		var got []string
		for _, j := range execution.New(p.spec).Release(time.Unix(0, 0), execution.Offer{}) {
			var ids []string
			for _, task := range j.Tasks {
				ids = append(ids, task.ID)
			}
			got = append(got, fmt.Sprint(ids))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", clustering, diff)
		}
	}
}

// TestJobsArePartedWhenTheSupplyShrinks: a job of four hours was released for a pilot that does not start. A worker
// with enough time for two of its tasks gets these two without any other event.
func TestJobsArePartedWhenTheSupplyShrinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster()
		c.extra = []execution.Capacity{{CPUs: 1, MemoryMiB: 2048, Left: 4 * time.Hour}}
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "a", Seconds: 3600}, spec{ID: "b", Seconds: 3600},
			spec{ID: "c", Seconds: 3600}, spec{ID: "d", Seconds: 3600}),
			Options: corral.RunOptions{Clustering: "horizontal=1", Stall: s(100 * 3600)}})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Ready == 4 })
		if len(c.started) > 0 {
			t.Fatalf("%v were started on no worker", c.started)
		}
		began := time.Now()
		c.mu.Lock()
		c.extra = nil
		c.mu.Unlock()
		soon := oneWorker()
		soon.endsAt = began.Add(150 * time.Minute)
		c.join(soon)
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Done == 2 })
		if took := time.Since(began); took > 121*time.Minute {
			t.Errorf("two tasks took %s", took)
		}
		c.lose(soon.id)
		c.join(&simWorker{id: "other", cpus: 1, memoryMiB: 2048})
		row = w.awaitOver(row.ID)
		if row.State != corral.RunSucceeded || len(c.started) != 4 {
			t.Errorf("%s: %s; started %v", row.State, row.Reason, c.started)
		}
	})
}
