package execution_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// chained returns the report of a chain of tasks that a worker runs one after the other, each for a second, with hop(i)
// before task i.
func chained(t *testing.T, n int, hop func(i int) time.Duration) *corral.RunReport {
	t.Helper()
	var edges [][2]int
	spec := execution.Spec{Tasks: make([]execution.TaskSpec, n)}
	for i := range spec.Tasks {
		spec.Tasks[i] = execution.TaskSpec{ID: string(rune('a' + i)), CPUs: 1, Estimate: time.Second}
		if i > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	var err error
	if spec.Graph, err = dag.New(n, edges); err != nil {
		t.Fatal(err)
	}
	x, now := execution.New(spec), start
	for i := range n {
		jobs := x.Release(now, execution.Offer{})
		if len(jobs) != 1 {
			t.Fatalf("%d jobs of task %d, want 1", len(jobs), i)
		}
		began := now.Add(hop(i))
		now = began.Add(time.Second)
		x.Apply(execution.Record{At: execution.ToMsec(began), Assigned: &execution.Assignment{Seq: jobs[0].Seq, Worker: "w",
			Parts: []execution.Part{{Task: int32(i), Attempt: 1}}}})
		x.Apply(execution.Record{At: execution.ToMsec(now), Finished: execution.ToOutcome(execution.Result{
			Key: jobs[0].Key(), Index: i, Attempt: 1, Status: execution.Done, Worker: "w", StartedAt: began, EndedAt: now})})
	}
	return x.Report(start)
}

// TestOverheads: a report contains the time that the cluster takes from a task's end to the next start, excluding the
// wait for the first worker and the effect of one lost connection.
func TestOverheads(t *testing.T) {
	t.Parallel()
	r := chained(t, 21, func(i int) time.Duration {
		switch i {
		case 0:
			return time.Hour
		case 9:
			return time.Minute
		case 12:
			return 0
		}
		return 20 * time.Millisecond
	})
	if r.Hop != corral.Seconds(20*time.Millisecond) || r.Hops != 20 || r.PeakRate != 1 {
		t.Errorf("hop %s of %d, %g starts a second, want 20ms of 20, and 1", r.Hop, r.Hops, r.PeakRate)
	}
	if r := chained(t, 5, func(int) time.Duration { return time.Second }); r.Hop != 0 || r.Hops != 0 {
		t.Errorf("four hops: hop %s of %d, want none", r.Hop, r.Hops)
	}
}

// TestNothingIsLearnedOfARunWithRetries: the workers and ends of earlier attempts are no longer known. Without retries,
// tasks that wait for one worker show how soon one follows another.
func TestNothingIsLearnedOfARunWithRetries(t *testing.T) {
	t.Parallel()
	spec := execution.Spec{Tasks: make([]execution.TaskSpec, 40)}
	for i := range spec.Tasks {
		spec.Tasks[i] = execution.TaskSpec{ID: string(rune('a' + i)), CPUs: 1, Estimate: time.Second, Retries: 1}
	}
	var err error
	if spec.Graph, err = dag.New(len(spec.Tasks), nil); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		x, now := execution.New(spec), start
		for _, job := range x.Release(now, execution.Offer{}) {
			i := job.Tasks[0].Index
			for attempt := 1; attempt <= 2; attempt++ {
				key, status := job.Key(), execution.Done
				if again && i == 20 && attempt == 1 {
					status = execution.Failed
				}
				began := now.Add(20 * time.Millisecond)
				now = began.Add(time.Second)
				x.Apply(execution.Record{At: execution.ToMsec(began), Assigned: &execution.Assignment{Seq: job.Seq, Worker: "w",
					Parts: []execution.Part{{Task: int32(i), Attempt: int32(attempt)}}}})
				x.Apply(execution.Record{At: execution.ToMsec(now), Finished: execution.ToOutcome(execution.Result{Key: key,
					Index: i, Attempt: attempt, Status: status, Worker: "w", StartedAt: began, EndedAt: now})})
				if status == execution.Done {
					break
				}
				if next := x.Release(now.Add(time.Hour), execution.Offer{}); len(next) == 1 {
					job = next[0]
				}
			}
		}
		if r := x.Report(start); r.Hops != 0 || (r.Reuses == 0) != again ||
			!again && r.Reuse != corral.Seconds(20*time.Millisecond) {
			t.Errorf("retries %t: hop %s of %d, reuse %s of %d", again, r.Hop, r.Hops, r.Reuse, r.Reuses)
		}
	}
}

// TestOverheadsOfClusteredJobs: only the first task of a job of several tasks counts, since the others follow it
// without the cluster.
func TestOverheadsOfClusteredJobs(t *testing.T) {
	t.Parallel()
	spec := execution.Spec{Tasks: make([]execution.TaskSpec, 40)}
	for i := range spec.Tasks {
		spec.Tasks[i] = execution.TaskSpec{ID: string(rune('a' + i)), CPUs: 1, Estimate: time.Second}
	}
	var err error
	if spec.Graph, err = dag.New(len(spec.Tasks), nil); err != nil {
		t.Fatal(err)
	}
	spec.Clusters = dag.ByLevel(spec.Graph, 20, nil)
	x, now := execution.New(spec), start
	jobs := x.Release(now, execution.Offer{CPUs: 1})
	for _, job := range jobs {
		now = now.Add(500 * time.Millisecond)
		var parts []execution.Part
		for _, k := range job.Tasks {
			parts = append(parts, execution.Part{Task: int32(k.Index), Attempt: 1})
		}
		x.Apply(execution.Record{At: execution.ToMsec(now), Assigned: &execution.Assignment{Seq: job.Seq, Worker: "w",
			Parts: parts}})
		for _, k := range job.Tasks {
			began := now
			now = began.Add(time.Second)
			x.Apply(execution.Record{At: execution.ToMsec(now), Finished: execution.ToOutcome(execution.Result{
				Key: job.Key(), Index: k.Index, Attempt: 1, Status: execution.Done, Worker: "w", StartedAt: began, EndedAt: now})})
		}
	}
	r := x.Report(start)
	if len(jobs) != 20 || r.Hops != 0 || r.Reuses != 19 || r.Reuse != corral.Seconds(500*time.Millisecond) {
		t.Errorf("%d jobs: hop %s of %d, reuse %s of %d, want 500ms of 19", len(jobs), r.Hop, r.Hops, r.Reuse, r.Reuses)
	}
}
