package execution_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// played returns the report of a run in which worker w has each task for the given period, in milliseconds.
func played(spec execution.Spec, stays [][2]int) *corral.RunReport {
	x, zero := execution.New(spec), execution.ToMsec(start)
	for i, stay := range stays {
		from, to := zero+execution.Msec(stay[0]), zero+execution.Msec(stay[1])
		seq, task := int64(i+1), int32(i)
		x.Apply(execution.Record{At: from, Assigned: &execution.Assignment{Seq: seq, Worker: "w", Parts: []part{{Task: task, Attempt: 1}}}})
		x.Apply(execution.Record{At: to, Finished: &execution.Outcome{Seq: seq, Task: task, Attempt: 1, Status: execution.Done, Worker: "w",
			Started: from, Ended: to}})
	}
	return x.Report(start)
}

// TestReuse: the time between two tasks that follow each other on a worker, however short the tasks are.
func TestReuse(t *testing.T) {
	t.Parallel()
	const n = 12
	for _, tt := range []struct {
		name     string
		stay     func(i int) [2]int
		clusters [][]int
		want     time.Duration
		of       int
		peak     float64
	}{
		{"tasks of a second", func(i int) [2]int { return [2]int{1020 * i, 1020*i + 1000} }, nil, 20 * time.Millisecond, n - 1, 1},
		{"without a pause", func(i int) [2]int { return [2]int{1000 * i, 1000*i + 1000} }, nil, 0, n - 1, 1},
		{"tasks without a duration", func(i int) [2]int { return [2]int{200 * i, 200 * i} }, nil, 200 * time.Millisecond, n - 1, 5},
		{"jobs whose first task has no duration", func(i int) [2]int { return [2]int{i / 2 * 1500, i/2*1500 + i%2*1000} },
			[][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}, 500 * time.Millisecond, n/2 - 1, 0},
	} {
		spec := flat(t, slices.Repeat([]int{1}, n)...)
		spec.Clusters = tt.clusters
		stays := make([][2]int, n)
		for i := range stays {
			stays[i] = tt.stay(i)
		}
		r := played(spec, stays)
		if r.Hops != 0 || r.Reuse != corral.Seconds(tt.want) || r.Reuses != tt.of || r.PeakRate != tt.peak {
			t.Errorf("%s: hop %s of %d, reuse %s of %d, %g starts a second, want %s of %d, %g", tt.name, r.Hop, r.Hops, r.Reuse,
				r.Reuses, r.PeakRate, tt.want, tt.of, tt.peak)
		}
	}
}

// TestFewOverheads: means need five measurements, and the starts per second ten of either kind.
func TestFewOverheads(t *testing.T) {
	t.Parallel()
	stays := make([][2]int, 12)
	for i := range stays {
		stays[i] = [2]int{1020 * i, 1020*i + 1000}
	}
	for _, tt := range []struct {
		chain, alone int // tasks that wait for each other, and tasks that do not
		hops, reuses int
		peak         float64
	}{
		{5, 0, 0, 0, 0}, {6, 0, 5, 0, 0}, {0, 5, 0, 0, 0}, {0, 6, 0, 5, 0},
		{6, 4, 5, 0, 0}, {6, 5, 5, 5, 1}, {10, 0, 9, 0, 0}, {11, 0, 10, 0, 1},
	} {
		spec := flat(t, slices.Repeat([]int{1}, tt.chain+tt.alone)...)
		var edges [][2]int
		for i := 1; i < tt.chain; i++ {
			edges = append(edges, [2]int{i - 1, i})
		}
		g, err := dag.New(len(spec.Tasks), edges)
		if err != nil {
			t.Fatal(err)
		}
		spec.Graph = g
		if r := played(spec, stays[:len(spec.Tasks)]); r.Hops != tt.hops || r.Reuses != tt.reuses || r.PeakRate != tt.peak {
			t.Errorf("%d in a chain and %d alone: %d hops, %d reuses, %g starts a second, want %d, %d, %g", tt.chain, tt.alone,
				r.Hops, r.Reuses, r.PeakRate, tt.hops, tt.reuses, tt.peak)
		}
	}
}

// TestReport: a report compares the makespan with its bounds, as far as the number of cpus is known.
func TestReport(t *testing.T) {
	t.Parallel()
	for cpus, want := range map[int]corral.RunReport{
		0: {TaskTime: minutes(30), CriticalPath: minutes(20)},
		2: {TaskTime: minutes(30), CriticalPath: minutes(20), CPUs: 2, LowerBound: minutes(20), ListSchedule: minutes(30), OverBound: 2, OverList: 40.0 / 30},
		4: {TaskTime: minutes(30), CriticalPath: minutes(20), CPUs: 4, LowerBound: minutes(20), ListSchedule: minutes(20), OverBound: 2, OverList: 2},
	} {
		want.Makespan, want.Parallelism, want.WaitForWorkers = minutes(40), 0.75, minutes(5)
		x := execution.New(flat(t, 2, 1))
		for _, r := range []execution.Record{
			{At: after(1), CPUs: cpus},
			assigned(5, 1, "w", 0, 1), ended(5, 15, 1, "w", 0, 1, execution.Done),
			assigned(20, 2, "w", 1, 1), ended(20, 40, 2, "w", 1, 1, execution.Done),
		} {
			x.Apply(r)
		}
		if diff := cmp.Diff(&want, x.Report(after(0).Time())); diff != "" {
			t.Errorf("with %d cpus (-want +got):\n%s", cpus, diff)
		}
	}
	if r := execution.New(flat(t, 1)).Report(start); r != nil {
		t.Errorf("a report of a run in which nothing ran: %+v", r)
	}
}

func minutes(n int) corral.Seconds { return corral.Seconds(time.Duration(n) * time.Minute) }
