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

// The end of a run can be forecast if the number of cpus is known, a task is done, and it is not years away.
func TestEndsIsUnknown(t *testing.T) {
	t.Parallel()
	const year = 366 * 24 * time.Hour
	for _, tt := range []struct {
		name  string
		done  bool // of the first task
		cpus  int
		rest  time.Duration // estimate of the second task
		known bool
	}{
		{"nothing is done", false, 1, time.Hour, false},
		{"an hour", true, 1, time.Hour, true},
		{"no cpus", true, 0, time.Hour, false},
		{"no cpus for no time", true, 0, 0, false},
		{"a year", true, 1, year, true},
		{"more than a year", true, 1, year + time.Second, false},
	} {
		spec := flat(t, 1, 1)
		spec.Tasks[0].Estimate, spec.Tasks[1].Estimate = 10*time.Minute, tt.rest
		x := execution.New(spec)
		if x.Apply(assigned(0, 1, "w", 0, 1)); tt.done {
			x.Apply(ended(0, 10, 1, "w", 0, 1, execution.Done))
		}
		end, ok := x.Ends(after(20).Time(), tt.cpus)
		if want := after(20).Time().Add(tt.rest); ok != tt.known || ok && !end.Equal(want) {
			t.Errorf("%s: it ends at %s, %t, want %s", tt.name, end, ok, want)
		}
	}
}

// A record keeps what the worker measured, to the millisecond.
func TestOutcomeKeepsTheResult(t *testing.T) {
	t.Parallel()
	r := execution.Result{
		Key: execution.Key{Run: 3, Seq: 7}, Index: 5, Attempt: 2, Status: execution.Failed, Cause: execution.OverMemory, Exit: 137,
		Signal: "SIGKILL", Reason: "too much memory", Worker: "w", StartedAt: after(0).Time(), EndedAt: after(3).Time(),
		Usage: execution.Usage{UserCPU: 3 * time.Second, SysCPU: 500 * time.Millisecond, MaxRSSKiB: 9000, ReadBytes: 1, WrittenBytes: 2,
			MeasuredBy: "somehow"},
		Travel: execution.Travel{In: time.Second, Out: 2 * time.Second, Bytes: 100}, Changed: []string{"input"},
	}
	o := execution.ToOutcome(r)
	if diff := cmp.Diff(r, o.Result(3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if o.CPU != 3500 {
		t.Errorf("cpu time of user and system: %d ms, want 3500", o.CPU)
	}
}
