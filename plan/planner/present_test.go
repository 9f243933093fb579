package planner_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/workflow/dag"
)

// beside returns work of n independent tasks, each of which takes a minute on one cpu.
func beside(t *testing.T, n int) plan.Work {
	t.Helper()
	w := plan.Work{Name: "bag"}
	for range n {
		w.Tasks = append(w.Tasks, plan.Task{ID: string(rune('a' + len(w.Tasks))), Runtime: time.Minute,
			Needs: corral.Resources{CPUs: 1}})
	}
	g, err := dag.New(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Graph = g
	return w
}

// there returns a present pilot of one host that stays until end.
func there(cpus int, end time.Duration) plan.Present {
	return plan.Present{Hosts: 1, End: end, Keep: time.Minute,
		Host: corral.Resources{CPUs: cpus, MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}}
}

// cloud returns a site that provides pilots of any size at once.
func cloud() plan.Site {
	return plan.Site{Name: "cloud", Hosts: 10, Pilots: 10, CPUs: 64, Walltime: 24 * time.Hour, Tariff: plan.CoreHours,
		Host: corral.Resources{CPUs: 8, MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Wait: func(plan.Shape) time.Duration { return 0 }}
}

// TestPresentPilotsAreUsedFirst: a plan requests only capacity that the present pilots do not provide.
func TestPresentPilotsAreUsedFirst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		present  []plan.Present
		deadline time.Duration
		cpus     int // held in addition to the present pilots
	}{
		{"they suffice", []plan.Present{there(4, time.Hour)}, 2 * time.Minute, 0},
		{"half of it is missing", []plan.Present{there(2, time.Hour)}, 2 * time.Minute, 2},
		{"they leave too soon", []plan.Present{there(8, 30*time.Second)}, 2 * time.Minute, 4},
		{"they leave half-way", []plan.Present{there(4, 90*time.Second)}, 2 * time.Minute, 2},
		{"none is there", nil, 2 * time.Minute, 4},
	} {
		problem := plan.Problem{Work: beside(t, 8), Sites: []plan.Site{cloud()}, Present: tc.present}
		p, err := planner.Make(problem, plan.Goal{Objective: plan.CPUs, Deadline: corral.Seconds(tc.deadline)},
			planner.Options{})
		if err != nil || !p.Feasible || p.PeakCPUs != tc.cpus {
			t.Errorf("%s: %v, %+v, want %d cpus", tc.name, err, p, tc.cpus)
		}
	}
}

// TestSlowPresentPilots: a task that is too slow on a present pilot gets a faster host, if there is a goal that needs it.
func TestSlowPresentPilots(t *testing.T) {
	t.Parallel()
	slow := there(4, time.Hour)
	slow.Speed = 0.5
	problem := plan.Problem{Work: beside(t, 1), Sites: []plan.Site{cloud()}, Present: []plan.Present{slow}}
	for deadline, held := range map[time.Duration]int{90 * time.Second: 1, 2 * time.Minute: 0} {
		p, err := planner.Make(problem, plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(deadline)},
			planner.Options{})
		if err != nil || !p.Feasible || p.PeakCPUs != held {
			t.Errorf("deadline of %s: %v, %+v, want %d cpus", deadline, err, p, held)
		}
	}
}

// TestExpect: running tasks stay where they are, a pilot that is idle for too long has left, and tasks that do not fit
// any pilot before it leaves remain.
func TestExpect(t *testing.T) {
	t.Parallel()
	busy, late, idle := there(2, time.Hour), there(1, time.Hour), there(1, time.Hour)
	busy.Running = []plan.Running{{Task: 0}}
	late.Ready, idle.Idle = 30*time.Second, time.Hour
	work := beside(t, 3)
	work.Tasks[0].Runtime = 5 * time.Minute // remaining time
	for _, tc := range []struct {
		name    string
		present []plan.Present
		want    planner.Forecast
	}{
		{"one that runs, one beside it", []plan.Present{busy},
			planner.Forecast{End: 5 * time.Minute, Until: []time.Duration{5 * time.Minute}}},
		{"another comes", []plan.Present{busy, late},
			planner.Forecast{End: 5 * time.Minute, Until: []time.Duration{5 * time.Minute, 90 * time.Second}}},
		{"another has left", []plan.Present{busy, idle},
			planner.Forecast{End: 5 * time.Minute, Until: []time.Duration{5 * time.Minute, 0}}},
		{"too short", []plan.Present{there(3, 2*time.Minute)},
			planner.Forecast{End: time.Minute, Left: 1, Until: []time.Duration{time.Minute}}},
		{"nothing", nil, planner.Forecast{Left: 3}},
	} {
		got := planner.Expect(plan.Problem{Work: work, Present: tc.present})
		if got.End != tc.want.End || got.Left != tc.want.Left || !slices.Equal(got.Until, tc.want.Until) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestPlansBesidePresentPilots: with any present pilots, a feasible plan passes the validator, which Make calls, and
// does not hold more than a plan without present pilots that ends as early.
func TestPlansBesidePresentPilots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		work := beside(t, rapid.IntRange(1, 20).Draw(r, "tasks"))
		problem := plan.Problem{Work: work, Sites: []plan.Site{cloud()}}
		next := 0
		for range rapid.IntRange(0, 3).Draw(r, "present") {
			q := there(rapid.IntRange(1, 4).Draw(r, "cpus"),
				time.Duration(rapid.IntRange(10, 600).Draw(r, "end"))*time.Second)
			q.Hosts = rapid.IntRange(1, 2).Draw(r, "hosts")
			if rapid.Bool().Draw(r, "coming") {
				q.Ready = time.Duration(rapid.IntRange(1, 300).Draw(r, "ready")) * time.Second
				q.End += q.Ready
			} else if next < len(work.Tasks) && rapid.Bool().Draw(r, "busy") {
				q.Running = append(q.Running, plan.Running{Task: next, Host: q.Hosts - 1})
				next++
			}
			problem.Present = append(problem.Present, q)
		}
		goal := plan.Goal{Objective: rapid.SampledFrom([]plan.Objective{plan.Cost, plan.Makespan, plan.Tradeoff}).Draw(r,
			"objective"), Tradeoff: plan.Whole / 2}
		if rapid.Bool().Draw(r, "in time") {
			goal.Deadline = corral.Seconds(time.Duration(rapid.IntRange(60, 1200).Draw(r, "deadline")) * time.Second)
		}
		p, err := planner.Make(problem, goal, planner.Options{})
		if err != nil {
			r.Fatal(err)
		}
		if f := planner.Expect(problem); f.Left == 0 && (goal.Deadline == 0 || f.End <= time.Duration(goal.Deadline)) &&
			(!p.Feasible || goal.Objective == plan.Cost && len(p.Pilots) > 0) {
			r.Fatalf("what is there suffices until %s, and the plan asks for %+v", f.End, p.Pilots)
		}
	})
}
