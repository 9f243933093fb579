package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

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
