package sim_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// queued returns a site whose waits follow from a queue, in its state after some time.
func queued(m queue.Machine, after time.Duration, background ...queue.Job) sim.Site {
	x := site(0)
	x.Batch = queue.New(m, background)
	x.Batch.Advance(after, nil)
	return x
}

// Pilots compete with other jobs: the first pilot is backfilled beside the running jobs, the second waits for an
// earlier wide job. The simulation is deterministic.
func TestPilotsWaitInAQueue(t *testing.T) {
	t.Parallel()
	const minute, hour = time.Minute, time.Hour
	x := queued(queue.Machine{Processors: 4, Policy: queue.EASY}, 10*minute,
		queue.Job{User: 1, Processors: 2, Requested: hour, Runtime: 40 * minute},
		queue.Job{User: 2, Submit: 5 * minute, Processors: 4, Requested: 2 * hour, Runtime: 20 * minute})
	first := pilot(1, 2, 30*minute) // backfilled: it ends before the wide job may start
	first.Idle = minute
	s := sim.Scenario{Work: work(t, task{20 * minute, nil}, task{20 * minute, nil}, task{50 * minute, nil},
		task{50 * minute, nil}), Sites: []sim.Site{x}, Asks: []sim.Ask{first, pilot(2, 1, 2*hour), pilot(1, 3, 2*hour)},
		Stall: 24 * hour}
	tr := sim.Run(s)
	// The wide job runs from 40 to 60 minutes in the queue's time, which is 30 to 50 minutes here; the third pilot
	// would wait for the end of the second pilot, by which time all tasks are done.
	want := []string{"t0.1 host 0 10-1210 done", "t1.1 host 0 10-1210 done", "t2.1 host 0 3010-6010 done",
		"t3.1 host 1 3010-6010 done", "pilot 1.1 asked 0 start 0 ready 10 end 1270 idle",
		"pilot 2.1 asked 0 start 3000 ready 3010 end 6010 removed",
		"pilot 3.1 asked 0 start -1e-09 ready -1e-09 end 6010 removed", "done"}
	if diff := gocmp.Diff(want, life(tr)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := sim.Run(s); gocmp.Diff(life(tr), life(again)) != "" {
		t.Errorf("played again: %s", gocmp.Diff(life(tr), life(again)))
	}
	if s.Sites[0].Batch.Now() != 10*minute || s.Sites[0].Batch.Waiting() != 1 {
		t.Error("the scenario's queue was changed")
	}
}

// A pilot that the machine can never run is refused, as by a real batch system.
func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	tr := sim.Run(sim.Scenario{Work: work(t, task{time.Minute, nil}), Asks: []sim.Ask{pilot(1, 5, time.Hour)},
		Sites: []sim.Site{queued(queue.Machine{Processors: 4, Policy: queue.FCFS}, 0)}})
	if len(tr.Pilots) != 0 || tr.Ending != sim.Stalled {
		t.Errorf("%s: %+v; 5 processors of 4 were asked for", tr.Ending, tr.Pilots)
	}
}

// A pilot that is released while it waits makes room for the pilots behind it in the queue.
func TestWithdrawnPilotsMakeRoom(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	x := queued(queue.Machine{Processors: 4, Policy: queue.FCFS}, 0, queue.Job{User: 1, Processors: 2, Requested: 5 * hour,
		Runtime: 5 * hour})
	s := sim.Scenario{Work: work(t, task{time.Minute, nil}), Sites: []sim.Site{x}, Stall: 24 * hour,
		Asks: []sim.Ask{pilot(1, 4, hour), pilot(1, 2, hour)}, Every: 10 * time.Minute}
	s.Control = func(now time.Duration, _ sim.View) []sim.Ask {
		if now != 20*time.Minute {
			return nil
		}
		return []sim.Ask{{Release: corral.AskCancel, Glidein: 1}}
	}
	tr := sim.Run(s)
	if tr.Ending != sim.Done || tr.Pilots[0].Start >= 0 || tr.Pilots[1].Start != 20*time.Minute {
		t.Errorf("%s (%s): %+v", tr.Ending, tr.Why, tr.Pilots)
	}
}

// No job runs across a maintenance period.
func TestQueueKnowsMaintenance(t *testing.T) {
	t.Parallel()
	x := queued(queue.Machine{Processors: 4, Policy: queue.EASY}, 0)
	x.Closed = []plan.Span{{From: 30 * time.Minute, To: 2 * time.Hour}}
	tr := sim.Run(sim.Scenario{Work: work(t, task{time.Minute, nil}), Sites: []sim.Site{x}, Stall: 24 * time.Hour,
		Asks: []sim.Ask{pilot(1, 1, time.Hour)}})
	if tr.Ending != sim.Done || tr.Pilots[0].Start != 2*time.Hour {
		t.Errorf("%s (%s): %+v", tr.Ending, tr.Why, tr.Pilots)
	}
}

// Pilots start at the same times as in a queue to which all jobs are known in advance, including the pilots and the
// times for which they held their processors.
func TestWaitsAreThoseOfTheQueue(t *testing.T) {
	t.Parallel()
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		minutes := func(name string, from, to int) time.Duration {
			return time.Duration(number(name, from, to)) * time.Minute
		}
		m := queue.Machine{Processors: 8, Policy: rapid.SampledFrom(queue.Policies).Draw(t, "policy"),
			MaxUserRun: rapid.SampledFrom([]int{0, 2}).Draw(t, "max user run"), Interval: minutes("interval", 0, 3)}
		var jobs []queue.Job
		at := time.Duration(0)
		for range number("jobs", 0, 30) {
			at += minutes("gap", 0, 20)
			j := queue.Job{User: number("user", 1, 3), Submit: at, Processors: number("n", 1, 8), Requested: minutes("requested", 1, 120)}
			j.Runtime = minutes("runtime", 1, 130) // no runtime is 0, which would cause two passes at the same instant
			jobs = append(jobs, j)
		}
		x := queued(m, 0, jobs...)
		s := sim.Scenario{Sites: []sim.Site{x}, Horizon: 100 * time.Hour, Stall: 99 * time.Hour, Linger: true}
		var tasks []task
		for range number("tasks", 1, 6) {
			tasks = append(tasks, task{estimate: minutes("estimate", 5, 60)})
		}
		s.Work = work(outer, tasks...)
		for range number("pilots", 1, 5) {
			a := pilot(number("hosts", 1, 2), number("cpus", 1, 4), minutes("walltime", 70, 200))
			a.Submit = corral.Seconds(minutes("submit", 0, 300) + 30*time.Second) // no other job arrives then
			a.Idle = time.Duration(number("idle", 1, 30)) * time.Minute
			s.Asks = append(s.Asks, a)
		}
		tr := sim.Run(s)
		var pilots []queue.Job
		for _, h := range tr.Pilots {
			j := queue.Job{ID: -1, User: -2, Submit: h.Submit, Processors: h.Hosts * h.CPUs, Requested: h.Walltime,
				Runtime: h.End - h.Start}
			if h.Start < 0 {
				t.Fatalf("a pilot never started: %+v", h)
			}
			pilots = append(pilots, j)
		}
		jobs = append(jobs, pilots...)
		slices.SortStableFunc(jobs, func(a, b queue.Job) int { return cmp.Compare(a.Submit, b.Submit) })
		var want, got []time.Duration
		for _, h := range queue.Replay(m, jobs) {
			if h.ID == -1 {
				want = append(want, h.Start)
			}
		}
		for _, h := range tr.Pilots {
			got = append(got, h.Start)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pilots start at %v; in a queue that knows all, at %v", got, want)
		}
	})
}
