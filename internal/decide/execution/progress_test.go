package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// The progress of a task that is done shows how long it took and where, unless it was done before the run; that of a
// task that runs shows where and since when.
func TestProgressOf(t *testing.T) {
	t.Parallel()
	spec := flat(t, 1, 1, 1, 1, 1)
	spec.Tasks[2].Done = true
	x := execution.New(spec)
	for _, r := range []execution.Record{
		assigned(0, 1, "w", 0, 1), ended(0, 10, 1, "w", 0, 1, execution.Done),
		assigned(20, 2, "v", 1, 1),
		assigned(20, 3, "w", 3, 1), ended(20, 21, 3, "w", 3, 1, execution.Failed),
	} {
		x.Apply(r)
	}
	want := []execution.Progress{
		{State: corral.TaskDone, Worker: "w", Took: 10 * time.Minute},
		{State: corral.TaskRunning, Worker: "v", Since: after(20).Time()},
		{State: corral.TaskDone},
		{State: corral.TaskReady},
		{State: corral.TaskReady},
	}
	if diff := cmp.Diff(want, execution.ProgressOf(x)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
