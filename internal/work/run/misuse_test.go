package run

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// The report names the transformations whose tasks used more cpus than requested, the worst first, and the inputs that
// any attempts at tasks changed.
func TestReportOfMisuse(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, corral.RunOptions{}, spec{ID: "fair", CPUs: 4}, spec{ID: "greedy"}, spec{ID: "worse"}, spec{ID: "short"}, spec{ID: "again"}, spec{ID: "big"})
	p.flow.Tasks[1].Name, p.flow.Tasks[2].Name = "align", "align"
	s := newState(p)
	at := time.UnixMilli(1e9)
	end := func(task, attempt int, status execution.Status, ran, cpu time.Duration, changed ...string) {
		s.x.Apply(execution.Record{At: execution.ToMsec(at), Finished: execution.ToOutcome(execution.Result{
			Key: execution.Key{Run: 1, Seq: int64(task*10 + attempt)}, Index: task, Attempt: attempt, Status: status, Worker: "w",
			StartedAt: at, EndedAt: at.Add(ran), Usage: execution.Usage{UserCPU: cpu}, Changed: changed,
		})})
	}
	const second = time.Second
	end(0, 1, execution.Done, 10*second, 45*second)
	end(1, 1, execution.Done, 10*second, 20*second)
	end(2, 1, execution.Done, 10*second, 80*second, "table", "index")
	end(3, 1, execution.Done, second/2, 4*second)
	end(4, 1, execution.Cut, 10*second, 0, "table")
	s.x.Apply(execution.Record{At: 1, Finished: &execution.Outcome{Seq: 9, Task: 5, Attempt: 1, Status: execution.Failed,
		Cause: execution.OverMemory, Worker: "w", Started: 1, Ended: 2}})
	end(4, 2, execution.Done, 10*second, 12*second)
	r := s.report(at)
	over := []corral.OverCPUs{{Transformation: "align", Tasks: 2, Factor: 8, Task: "worse"}}
	if diff := cmp.Diff(over, r.OverCPUs); diff != "" {
		t.Errorf("over cpus (-want +got):\n%s", diff)
	}
	changed := []corral.ChangedInput{{Task: "worse", File: "table"}, {Task: "worse", File: "index"}, {Task: "again", File: "table"}}
	if diff := cmp.Diff(changed, r.ChangedInputs); diff != "" {
		t.Errorf("changed inputs (-want +got):\n%s", diff)
	}
	if got := listing(s)[2].ChangedInputs; !slices.Equal(got, []string{"table", "index"}) {
		t.Errorf("task worse has changed %q", got)
	}
	if diff := cmp.Diff(listing(s), indexOf(s).listing()); diff != "" {
		t.Errorf("the index tells something else (-state +index):\n%s", diff)
	}
}
