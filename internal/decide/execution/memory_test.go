package execution_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// TestResized: waiting jobs are examined again only if the amounts of memory that tasks get have changed, and not after
// each task of a kind of which one was killed for its memory.
func TestResized(t *testing.T) {
	t.Parallel()
	spec := execution.Spec{}
	for range 6 {
		spec.Tasks = append(spec.Tasks, execution.TaskSpec{ID: "t", CPUs: 1, MemoryMiB: 100, Kind: 1, Estimate: time.Second, Retries: 3})
	}
	var err error
	if spec.Graph, err = dag.New(len(spec.Tasks), nil); err != nil {
		t.Fatal(err)
	}
	x := execution.New(spec)
	offer := execution.Offer{}
	seqs := map[int]int64{}
	release := func() {
		for _, j := range x.Release(time.Unix(1, 0), offer) {
			seqs[j.Tasks[0].Index] = j.Seq
			x.Apply(execution.Record{At: 1, Assigned: &execution.Assignment{Seq: j.Seq, Worker: "w", More: j.MemoryMiB,
				Parts: []execution.Part{{Task: int32(j.Tasks[0].Index), Attempt: int32(j.Tasks[0].Attempt)}}}})
		}
	}
	release()
	for k, step := range []struct {
		task, attempt int32
		status        execution.Status
		mib           int64
		resized       bool
	}{
		{0, 1, execution.Done, 50, false},
		{1, 1, execution.Failed, 100, true},
		{2, 1, execution.Failed, 100, false}, // both are tried with 200
		{1, 2, execution.Done, 180, true},    // the largest need is known
		{2, 2, execution.Done, 180, false},
		{3, 1, execution.Done, 180, false},
		{4, 1, execution.Done, 170, false},
		{5, 1, execution.Done, 300, true},
	} {
		release()
		execution.Misfits(x, offer)
		o := &execution.Outcome{Seq: seqs[int(step.task)], Task: step.task, Attempt: step.attempt, Status: step.status,
			Worker: "w", Started: 1, Ended: 2}
		o.RSSKiB = step.mib << 10
		if step.status == execution.Failed {
			o.Cause = execution.OverMemory
		}
		x.Apply(execution.Record{At: 2, Finished: o})
		if got := execution.Resized(x); got != step.resized {
			t.Errorf("step %d, task %d.%d: resized is %t", k, step.task, step.attempt, got)
		}
	}
}
