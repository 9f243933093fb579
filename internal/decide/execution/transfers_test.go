package execution_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// travelled returns a run of a chain of tasks with the given transfers. Each task runs for a second, 20 ms after the
// outputs of the previous one arrived, alternately on workers a/0 and b/0.
func travelled(t *testing.T, ways []execution.Travel) (x *execution.Execution, end time.Time) {
	t.Helper()
	var edges [][2]int
	spec := execution.Spec{Tasks: make([]execution.TaskSpec, len(ways))}
	for i := range ways {
		spec.Tasks[i] = execution.TaskSpec{ID: fmt.Sprint("t", i), CPUs: 1, Estimate: time.Second}
		if i > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	var err error
	if spec.Graph, err = dag.New(len(ways), edges); err != nil {
		t.Fatal(err)
	}
	x, now := execution.New(spec), start
	for i, way := range ways {
		job := x.Release(now, execution.Offer{})[0]
		worker := []string{"a/0", "b/0"}[i/2%2]
		began := now.Add(20*time.Millisecond + way.In)
		ended := began.Add(time.Second)
		now = ended.Add(way.Out)
		x.Apply(execution.Record{At: execution.ToMsec(began), Assigned: &execution.Assignment{Seq: job.Seq, Worker: worker,
			Parts: []execution.Part{{Task: int32(i), Attempt: 1}}}})
		x.Apply(execution.Record{At: execution.ToMsec(now), Finished: execution.ToOutcome(execution.Result{Key: job.Key(),
			Index: i, Attempt: 1, Status: execution.Done, Worker: worker, StartedAt: began, EndedAt: ended, Travel: way})})
	}
	return x, now
}

func far(string) string { return "far" }

// TestFilesAreNoHop: the time of transfers is reported separately, and is part of the makespan but not of the hop.
func TestFilesAreNoHop(t *testing.T) {
	t.Parallel()
	ways := make([]execution.Travel, 21)
	for i := range ways {
		ways[i] = execution.Travel{In: 3 * time.Second, Out: 2 * time.Second, Bytes: 5e6}
	}
	x, end := travelled(t, ways)
	r := x.Report(start)
	if r.Hop != corral.Seconds(20*time.Millisecond) || r.Makespan != corral.Seconds(end.Sub(start)) ||
		r.TaskTime != corral.Seconds(21*time.Second) || r.WaitForWorkers != corral.Seconds(20*time.Millisecond) {
		t.Errorf("%+v, want a hop of 20ms, and the end at %s", r, end.Sub(start))
	}
	all := execution.Transfers(x, far)
	if len(all) != 1 || all[0] != (corral.SiteTransfer{Site: "far", Jobs: 21, Bytes: 21 * 5e6,
		Took: corral.Seconds(105 * time.Second), Bandwidth: 1e6}) {
		t.Errorf("%+v, want 1 MB a second", all)
	}
}

// TestTransfersBySite: each site has its own transfers; workers of unknown sites, and sites without transfers, are not
// reported.
func TestTransfersBySite(t *testing.T) {
	t.Parallel()
	ways := make([]execution.Travel, 24)
	for i := range ways {
		ways[i] = execution.Travel{In: 10 * time.Millisecond, Bytes: 100}
	}
	ways[5] = execution.Travel{}
	x, _ := travelled(t, ways)
	all := execution.Transfers(x, func(worker string) string { return map[string]string{"a/0": "near"}[worker] })
	if len(all) != 1 || all[0].Site != "near" || all[0].Jobs != 11 && all[0].Jobs != 12 ||
		all[0].Latency != corral.Seconds(10*time.Millisecond) || all[0].Bandwidth != 0 {
		t.Errorf("%+v, want those of one site, 10ms each", all)
	}
	if none, _ := travelled(t, make([]execution.Travel, 10)); execution.Transfers(none, far) != nil {
		t.Errorf("%+v of a run without any", execution.Transfers(none, far))
	}
}

// TestTransfersOfJobs: the files of a job are transferred together, so its tasks count as one, provided that one worker
// did all of them.
func TestTransfersOfJobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		workers [4]string // of the tasks, two of which are a job
		status  execution.Status
		want    []corral.SiteTransfer
	}{
		{"one worker", [4]string{"v", "v", "w", "w"}, execution.Done, []corral.SiteTransfer{
			{Site: "v", Jobs: 1, Bytes: 200, Took: corral.Seconds(60 * time.Millisecond), Latency: corral.Seconds(60 * time.Millisecond)},
			{Site: "w", Jobs: 1, Bytes: 200, Took: corral.Seconds(60 * time.Millisecond), Latency: corral.Seconds(60 * time.Millisecond)}}},
		{"one was done elsewhere", [4]string{"v", "w", "w", "w"}, execution.Done, []corral.SiteTransfer{
			{Site: "w", Jobs: 1, Bytes: 200, Took: corral.Seconds(60 * time.Millisecond), Latency: corral.Seconds(60 * time.Millisecond)}}},
		{"the last failed", [4]string{"v", "v", "w", "w"}, execution.Failed, []corral.SiteTransfer{
			{Site: "v", Jobs: 1, Bytes: 200, Took: corral.Seconds(60 * time.Millisecond), Latency: corral.Seconds(60 * time.Millisecond)}}},
	} {
		spec := flat(t, 1, 1, 1, 1)
		spec.Clusters = [][]int{{0, 1}, {2, 3}}
		x := execution.New(spec)
		for i, worker := range tt.workers {
			x.Apply(assigned(i, int64(i+1), worker, int32(i), 1))
			r := ended(i, i+1, int64(i+1), worker, int32(i), 1, execution.Done)
			if i == 3 {
				r.Finished.Status = tt.status
			}
			r.Finished.Way = &execution.Way{In: 10, Out: 20, Bytes: 100}
			x.Apply(r)
		}
		all := execution.Transfers(x, func(worker string) string { return worker })
		if diff := cmp.Diff(tt.want, all); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestTransfersTellLatencyFromBandwidth: for transfers that take a latency plus bytes ÷ bandwidth plus noise, both are
// found if sizes differ; if all sizes are similar, the result explains the total time.
func TestTransfersTellLatencyFromBandwidth(t *testing.T) {
	t.Parallel()
	const second = float64(time.Second)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name               string
		jobs               int
		bytes              func(i int) int64
		latency, bandwidth float64 // true values
		off                float64 // maximum relative error of both
		noise              float64 // maximum relative deviation of each transfer
	}{
		{"small and large", 40, func(i int) int64 { return 1 + int64(i%2)*64e6 }, 0.05, 20e6, 0.02, 0},
		{"noisy", 400, func(i int) int64 { return 1e4 + int64(i%2)*64e6 }, 0.05, 20e6, 0.1, 0.5},
		{"all sizes", 200, func(i int) int64 { return int64(math.Exp(float64(i) / 10)) }, 0.1, 5e6, 0.02, 0},
		{"few large ones", 100, func(i int) int64 { return 500 + int64(i/95)*1e9 }, 0.02, 50e6, 0.02, 0},
		{"one large one", 30, func(i int) int64 { return 500 + int64(i/29)*1e9 }, 0.02, 50e6, 0.02, 0},
	} {
		ways := make([]execution.Travel, c.jobs)
		for i := range ways {
			n := c.bytes(i)
			took := (c.latency + float64(n)/c.bandwidth) * (1 + c.noise*(2*rng.Float64()-1))
			ways[i] = execution.Travel{In: time.Duration(took * second), Bytes: n}
		}
		x, _ := travelled(t, ways)
		got := execution.Transfers(x, far)[0]
		latency := math.Abs(time.Duration(got.Latency).Seconds()/c.latency - 1)
		if bandwidth := math.Abs(got.Bandwidth/c.bandwidth - 1); latency > c.off || bandwidth > c.off {
			t.Errorf("%s: %+v, want %g s and %g bytes a second", c.name, got, c.latency, c.bandwidth)
		}
	}
}

// TestWaysOfHostileWorkers: the transfers that a worker reports may be nonsense, but their sums are computed.
func TestWaysOfHostileWorkers(t *testing.T) {
	t.Parallel()
	o := execution.ToOutcome(execution.Result{Travel: execution.Travel{In: -time.Hour, Out: -1, Bytes: -1}})
	if *o.Way != (execution.Way{}) {
		t.Errorf("%+v of less than nothing", o.Way)
	}
	ways := make([]execution.Travel, 8)
	for i := range ways {
		ways[i] = execution.Travel{In: time.Second, Bytes: math.MaxInt64}
	}
	x, _ := travelled(t, ways)
	if all := execution.Transfers(x, far); len(all) != 1 || all[0].Bytes <= 0 || all[0].Bandwidth <= 0 {
		t.Errorf("%+v of more than anything", all)
	}
}
