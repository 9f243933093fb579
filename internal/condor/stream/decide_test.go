package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// now is the time in all tables.
var now = time.Unix(1e9, 0)

// glidein returns a pool worker with free CPUs.
func glidein(id string, cpus, free int) corral.Worker {
	return corral.Worker{
		ID: id, CPUs: cpus, CPUsFree: free, MemoryMiB: 1000 * cpus, MemoryFree: 1000 * free, GPUs: 1, GPUsFree: 1,
		DiskMiB: corral.Unlimited, DiskFree: corral.Unlimited, Connected: true, EndsAt: now.Add(time.Hour),
	}
}

// waiting returns a number of tasks that each need a number of CPUs.
func waiting(jobs, cpus int) []matching.Class {
	return []matching.Class{{Jobs: jobs, Needs: matching.Resources{Resources: corral.Resources{CPUs: cpus}, Time: time.Second}}}
}

// in returns a worker job that has been in a state for a duration.
func in(state State, number int64, on string, cpus int, since time.Duration) WorkerJob {
	return WorkerJob{
		ID: eventlog.JobID{Cluster: int(number)}, Number: number, Glidein: on, State: state, CPUs: cpus, Since: now.Add(-since),
	}
}

// dialled returns the worker of a worker job.
func dialled(number int64, on string, cpus int) corral.Worker {
	return corral.Worker{ID: jobfiles.StreamWorker(on, number), CPUs: cpus, Connected: true}
}

// retired returns a worker that is draining.
func retired(number int64, on string, cpus int) corral.Worker {
	w := dialled(number, on, cpus)
	w.Draining = true
	return w
}

// text formats orders as in the table.
func text(orders []Order) string {
	var words []string
	for _, o := range orders {
		switch o.Deed {
		case Start:
			words = append(words, fmt.Sprintf("start %d on %s", o.Job.CPUs, o.Job.Glidein))
		case Remove:
			words = append(words, fmt.Sprintf("remove %d: %s", o.Job.Number, o.Why))
		case Retire:
			words = append(words, fmt.Sprintf("retire %d", o.Job.Number))
		case Bury:
			words = append(words, "bury "+o.Worker)
		case Rank:
			words = append(words, fmt.Sprintf("rank %d", o.Job.Number))
		}
	}
	return strings.Join(words, "; ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	a, b := glidein("a", 4, 4), glidein("b", 2, 2)
	all := []corral.Worker{a, b}
	draining, ending := a, a
	draining.Draining, ending.EndsAt = true, now.Add(10*time.Second)
	hungry := waiting(1, 1)
	hungry[0].Needs.MemoryMiB = 3000
	fed := in(Running, 1, "a", 1, time.Minute)
	fed.MemoryMiB = 2000
	long := waiting(1, 1)
	long[0].Needs.Time = 2 * time.Hour
	slow, half := a, waiting(1, 1)
	slow.Speed, half[0].Needs.Time = 0.5, 40*time.Minute
	for name, tt := range map[string]struct {
		world World
		want  string
	}{
		"nothing waits":            {World{Runs: 1, Glideins: all}, ""},
		"no glidein":               {World{Runs: 1, Waiting: waiting(9, 1)}, ""},
		"many tasks":               {World{Runs: 1, Waiting: waiting(500, 1), Glideins: all}, "start 4 on a; start 2 on b"},
		"one task":                 {World{Runs: 1, Waiting: waiting(1, 1), Glideins: all}, "start 1 on a"},
		"a wide task":              {World{Runs: 1, Waiting: waiting(2, 3), Glideins: all}, "start 4 on a"},
		"too wide a task":          {World{Runs: 1, Waiting: waiting(2, 5), Glideins: all}, ""},
		"memory of the larger one": {World{Runs: 1, Waiting: hungry, Glideins: []corral.Worker{b, a}}, "start 1 on a"},
		"memory that a worker job has, before HTCondor says so": {World{Runs: 1, Waiting: hungry, Glideins: []corral.Worker{a},
			Jobs: []WorkerJob{fed}, Workers: []corral.Worker{dialled(1, "a", 1)}}, ""},
		"longer than any glidein": {World{Runs: 1, Waiting: long, Glideins: all}, ""},
		"longer than a slow one":  {World{Runs: 1, Waiting: half, Glideins: []corral.Worker{slow, b}}, "start 1 on b"},
		"others' jobs run there":  {World{Runs: 1, Waiting: waiting(9, 1), Glideins: []corral.Worker{glidein("a", 4, 1)}}, "start 1 on a"},
		"it drains":               {World{Runs: 1, Waiting: waiting(9, 1), Glideins: []corral.Worker{draining}}, ""},
		"it ends":                 {World{Runs: 1, Waiting: waiting(9, 1), Glideins: []corral.Worker{ending}}, ""},
		"a job waits there": {World{Runs: 1, Waiting: waiting(9, 1), Glideins: []corral.Worker{a},
			Jobs: []WorkerJob{in(Idle, 1, "a", 2, 0)}}, ""},
		"one comes": {World{Runs: 1, Waiting: waiting(4, 1), Glideins: all, Jobs: []WorkerJob{in(Running, 1, "a", 4, 0)}}, ""},
		"one does not come": {World{Runs: 1, Waiting: waiting(4, 1), Glideins: all,
			Jobs: []WorkerJob{in(Running, 1, "a", 4, time.Minute)}}, "start 2 on b"},
		"it has dialled in, and more waits": {World{Runs: 1, Waiting: waiting(4, 1), Glideins: all,
			Jobs: []WorkerJob{in(Running, 1, "a", 4, 0)}, Workers: []corral.Worker{dialled(1, "a", 4)}}, "start 2 on b"},
		"tasks wait at a worker": {World{Runs: 1, Behind: 2, Glideins: all,
			Jobs: []WorkerJob{in(Running, 1, "a", 4, 0)}, Workers: []corral.Worker{dialled(1, "a", 4)}}, "start 2 on b"},
		"its job is gone, and so is it": {World{Runs: 1, Glideins: all, Absent: []string{"a+1"}, Workers: []corral.Worker{dialled(2, "b", 2)}}, "bury a+1"},
		"its job is there, and may come back": {World{Runs: 1, Glideins: all, Absent: []string{"a+1"},
			Jobs: []WorkerJob{in(Running, 1, "a", 4, time.Hour)}}, ""},
		"the collector is late": {World{Runs: 1, Waiting: waiting(9, 1), Glideins: []corral.Worker{a},
			Jobs: []WorkerJob{in(Running, 1, "a", 4, time.Minute)}, Workers: []corral.Worker{dialled(1, "a", 4)}}, ""},
		"HTCondor holds it": {World{Runs: 1, Waiting: waiting(2, 1), Glideins: []corral.Worker{b},
			Jobs: []WorkerJob{in(Held, 1, "b", 2, 0)}}, "remove 1: HTCondor holds it; start 2 on b"},
		"the user holds it": {World{Runs: 1, Waiting: waiting(2, 1), Glideins: []corral.Worker{b},
			Jobs: []WorkerJob{in(Parked, 1, "b", 2, time.Hour)}}, "start 2 on b"},
		"its glidein has gone": {World{Runs: 1, Glideins: all, Jobs: []WorkerJob{in(Idle, 1, "c", 2, time.Minute)}},
			"remove 1: its glidein is gone"},
		"nothing waits for it": {World{Runs: 1, Glideins: all, Jobs: []WorkerJob{in(Idle, 1, "a", 2, time.Minute)}},
			"remove 1: nothing waits for it"},
		"nothing waits for a moment": {World{Runs: 1, Glideins: all, Jobs: []WorkerJob{in(Idle, 1, "a", 2, time.Second)}}, ""},
		"it rests":                   {World{Runs: 1, Waiting: waiting(9, 1), Glideins: all, RestUntil: now.Add(1)}, ""},
		"a run is more urgent": {World{Runs: 1, Priority: 7, Waiting: waiting(2, 1), Glideins: all,
			Jobs: []WorkerJob{in(Idle, 1, "a", 2, 0)}}, "rank 1"},
		"a wide task is stuck behind narrow ones": {World{Runs: 1, Waiting: waiting(1, 4), StuckFrom: now.Add(-time.Minute),
			Glideins: []corral.Worker{a, b}, Workers: []corral.Worker{dialled(1, "a", 1), dialled(2, "a", 3), dialled(3, "b", 2)},
			Jobs: []WorkerJob{in(Running, 1, "a", 1, time.Hour), in(Running, 2, "a", 3, time.Hour), in(Running, 3, "b", 2, time.Hour)},
		}, "retire 1; retire 2"},
		"for a moment": {World{Runs: 1, Waiting: waiting(1, 4), StuckFrom: now.Add(-time.Second), Glideins: []corral.Worker{a},
			Workers: []corral.Worker{dialled(1, "a", 1)}, Jobs: []WorkerJob{in(Running, 1, "a", 4, time.Hour)}}, ""},
		"while it is cleared, narrow ones get nothing there": {World{Runs: 1, Waiting: append(waiting(1, 4), waiting(9, 1)...),
			StuckFrom: now.Add(-time.Minute), Glideins: []corral.Worker{a}, Workers: []corral.Worker{retired(1, "a", 1)},
			Jobs: []WorkerJob{in(Running, 1, "a", 1, time.Hour)}}, ""},
		"no run, for a moment": {World{AloneFrom: now.Add(-time.Second), Jobs: []WorkerJob{in(Running, 1, "a", 4, 0)}}, ""},
		"no run": {World{AloneFrom: now.Add(-time.Minute), Waiting: waiting(9, 1), Glideins: all, Jobs: []WorkerJob{
			in(Running, 1, "a", 4, 0), in(Parked, 2, "a", 4, 0), in(Leaving, 3, "a", 4, 0), in(Idle, 4, "b", 1, 0)}},
			"remove 1: no run is left; remove 2: no run is left; remove 4: no run is left"},
	} {
		if got := text(Decide(now, tt.world)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A worker job is assigned GPUs if any fitting task needs them, whatever tasks precede that task, and only free GPUs.
func TestGPUsAreTakenAlong(t *testing.T) {
	t.Parallel()
	wants := func(gpus int) []matching.Class {
		all := append(waiting(9, 1), waiting(1, 1)...)
		all[0].Needs.MemoryMiB, all[1].Needs.GPUs = 100, gpus
		return all
	}
	has := in(Running, 1, "a", 1, time.Minute)
	has.GPUs = 1
	for name, tt := range map[string]struct {
		gpus int
		jobs []WorkerJob
		want int
	}{
		"none wants any":      {0, nil, 0},
		"one wants one":       {1, nil, 1},
		"more than there are": {2, nil, 0},
		"taken already":       {1, []WorkerJob{has}, 0},
	} {
		w := World{Runs: 1, Waiting: wants(tt.gpus), Glideins: []corral.Worker{glidein("a", 4, 4)}, Jobs: tt.jobs}
		w.Workers = append(w.Workers, dialled(1, "a", 1))
		orders := Decide(now, w)
		if len(orders) != 1 || orders[0].Need != (corral.Resources{CPUs: 1, MemoryMiB: 100, GPUs: tt.want}) {
			t.Errorf("%s: %+v, want one start that needs %d", name, orders, tt.want)
		}
	}
}

// In any world, no more resources are requested from a glidein than it has, no glidein receives a second waiting worker
// job, no job is removed twice, and once all orders have taken effect, no more orders follow.
func TestDecideSettles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := World{Runs: rapid.IntRange(0, 1).Draw(t, "runs"), AloneFrom: now.Add(-time.Hour)}
		for i := range rapid.IntRange(0, 4).Draw(t, "glideins") {
			cpus := rapid.IntRange(1, 8).Draw(t, "cpus")
			w.Glideins = append(w.Glideins, glidein(string(rune('a'+i)), cpus, cpus))
		}
		for range rapid.IntRange(0, 3).Draw(t, "classes") {
			w.Waiting = append(w.Waiting, waiting(rapid.IntRange(1, 20).Draw(t, "jobs"), rapid.IntRange(1, 9).Draw(t, "wide"))...)
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "jobs") {
			state := rapid.SampledFrom([]State{Idle, Running, Held, Parked, Leaving}).Draw(t, "state")
			on := rapid.SampledFrom([]string{"a", "b", "c", "x"}).Draw(t, "on")
			age := time.Duration(rapid.IntRange(0, 90).Draw(t, "age")) * time.Second
			w.Jobs = append(w.Jobs, in(state, int64(i+1), on, rapid.IntRange(1, 3).Draw(t, "has"), age))
		}
		for round := 0; ; round++ {
			orders := Decide(now, w)
			if len(orders) == 0 {
				break
			}
			if round > 4*8 { // at least one worker job of one CPU per round, until all glideins are full
				t.Fatalf("it goes on and on: %s", text(orders))
			}
			w.carry(t, orders)
		}
		if w.Runs == 0 && len(w.Jobs) > 0 && w.Jobs[0].State != Leaving {
			t.Errorf("without a run there are still %v", w.Jobs)
		}
	})
}

// carry simulates the effect of orders: jobs start at once, and their workers connect.
func (w *World) carry(t *rapid.T, orders []Order) {
	for _, o := range orders {
		switch o.Deed {
		case Start:
			used := o.Job.CPUs
			for _, j := range w.Jobs {
				if j.Glidein == o.Job.Glidein && (j.State == Idle || j.State == Running) {
					used += j.CPUs
				}
				if j.Glidein == o.Job.Glidein && j.State == Idle {
					t.Errorf("two worker jobs wait for %s", j.Glidein)
				}
			}
			for _, g := range w.Glideins {
				if g.ID == o.Job.Glidein && used > g.CPUs {
					t.Errorf("%d cpus are asked of %s, which has %d", used, g.ID, g.CPUs)
				}
			}
			number := int64(100 + len(w.Jobs))
			w.Jobs = append(w.Jobs, in(Running, number, o.Job.Glidein, o.Job.CPUs, 0))
			w.Workers = append(w.Workers, dialled(number, o.Job.Glidein, o.Job.CPUs))
		case Retire:
			t.Errorf("job %d is retired, although nothing was stuck for long", o.Job.Number)
		case Remove:
			for i, j := range w.Jobs {
				if j.ID == o.Job.ID && j.State == Leaving {
					t.Errorf("job %d is removed twice", j.Number)
				}
				if j.ID == o.Job.ID {
					w.Jobs[i].State = Leaving
				}
			}
		}
	}
}

func TestRestGrows(t *testing.T) {
	t.Parallel()
	var last time.Duration
	for failures := range 40 {
		rest := Rest(failures)
		if rest < last || rest > restMost {
			t.Errorf("after %d failures it rests %v, after one less %v", failures, rest, last)
		}
		last = rest
	}
	if Rest(0) != 0 || last != restMost {
		t.Errorf("it rests from %v to %v", Rest(0), last)
	}
}
