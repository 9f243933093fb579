package revision_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow/dag"
)

// scene returns four independent tasks of ten minutes, and a plan with a deadline of an hour whose only pilot, with one
// cpu, runs the first of them, a minute after the plan's beginning.
func scene(t *testing.T) revision.View {
	t.Helper()
	g, err := dag.New(4, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := revision.View{Now: time.Minute, Period: time.Second, Grace: time.Second, Promise: 41 * time.Minute,
		Goal: plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(time.Hour)}}
	v.Problem = plan.Problem{Work: plan.Work{Graph: g}, Sites: []plan.Site{hpc(0).Site}}
	for range 4 {
		v.Problem.Work.Tasks = append(v.Problem.Work.Tasks, plan.Task{ID: "t", Kind: "t", Runtime: 10 * time.Minute,
			Needs: corral.Resources{CPUs: 1}})
		v.Tasks = append(v.Tasks, revision.Task{State: corral.TaskReady, Pilot: -1})
	}
	v.Pilots = []revision.Pilot{onePilot(0, revision.Working)}
	v.Pilots[0].Began = 0
	v.Tasks[0] = revision.Task{State: corral.TaskRunning, Pilot: 0, Since: time.Minute}
	return v
}

// onePilot returns a pilot with one cpu for two hours.
func onePilot(number int, phase revision.Phase) revision.Pilot {
	return revision.Pilot{Number: number, Phase: phase, Began: -1, Ended: -1, Keep: time.Minute, Tariff: plan.CoreHours,
		Overhead: 5 * time.Second, Margin: time.Minute,
		Host:  corral.Resources{CPUs: 1, MemoryMiB: 1000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Pilot: plan.Pilot{Site: "hpc", Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(2 * time.Hour)}}}
}

// TestAssumedEstimates: the first measurement replaces an assumed estimate, and is averaged with any other one.
func TestAssumedEstimates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		guesses map[string]bool
		left    time.Duration // estimate of a waiting task
	}{
		{nil, 40 * time.Minute}, {map[string]bool{"t": true}, 70 * time.Minute}, {map[string]bool{"u": true}, 40 * time.Minute},
	} {
		v := scene(t)
		v.Guesses, v.Tasks[0] = c.guesses, revision.Task{State: corral.TaskDone, Pilot: -1, Took: 70 * time.Minute}
		if left := revision.Left(v); left.Work.Tasks[0].Runtime != c.left {
			t.Errorf("assumed kinds %v: %s left, want %s", c.guesses, left.Work.Tasks[0].Runtime, c.left)
		}
	}
}

// TestSlowHostsInARevision: the elapsed and the remaining time of a task on a slow host are computed with that host's
// speed.
func TestSlowHostsInARevision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		speed corral.Speed
		left  time.Duration // rest of the first task's ten minutes, five minutes after its start, on the fastest hosts
		end   time.Duration // end of all four in sequence
	}{
		{0, 5 * time.Minute, 41 * time.Minute},
		{0.5, 7*time.Minute + 30*time.Second, 81 * time.Minute},
	} {
		v := scene(t)
		v.Now, v.Pilots[0].Speed, v.Problem.Sites = 6*time.Minute, c.speed, nil
		if left := revision.Left(v); left.Work.Tasks[0].Runtime != c.left || left.Present[0].Speed != c.speed {
			t.Errorf("at speed %g %s are left at %g, want %s", c.speed, left.Work.Tasks[0].Runtime, left.Present[0].Speed,
				c.left)
		}
		d, err := revision.Decide(v)
		if err != nil || d.Predicted.End != c.end {
			t.Errorf("at speed %g the end is expected after %s, %v; want %s", c.speed, d.Predicted.End, err, c.end)
		}
	}
}

// TestLeavingCosts: the expected cost of a plan includes the time that pilots take to leave, for each pilot that has
// started and for each future pilot with tasks.
func TestLeavingCosts(t *testing.T) {
	t.Parallel()
	cost := func(leave time.Duration) cost.Money {
		v := scene(t)
		v.Problem.Sites = nil
		v.Pilots = append(v.Pilots, onePilot(1, revision.Queued))
		v.Problem.Cluster.Leave = leave
		d, err := revision.Decide(v)
		if err != nil {
			t.Fatal(err)
		}
		return d.Predicted.Cost
	}
	_, two := plan.CoreHours.Bill(plan.Pilot{Shape: corral.Shape{Hosts: 1, CPUs: 2}, End: corral.Seconds(time.Hour)})
	if more := cost(time.Hour) - cost(0); more != two {
		t.Errorf("an hour of leaving of two pilots costs %s more, want %s", more, two)
	}
}

// wait adds two pilots that wait for the end of the first task, on which all other tasks depend.
func wait(t *testing.T, v *revision.View) {
	t.Helper()
	var err error
	if v.Problem.Work.Graph, err = dag.New(4, [][2]int{{0, 1}, {0, 2}, {0, 3}}); err != nil {
		t.Fatal(err)
	}
	v.Pilots = append(v.Pilots, onePilot(1, revision.Working), onePilot(2, revision.Working))
	for i := range v.Pilots {
		v.Pilots[i].Began, v.Pilots[i].Keep = 0, time.Hour
	}
	for i := range v.Tasks {
		if i > 0 {
			v.Tasks[i].State = corral.TaskWaiting
		}
	}
}

// travel adds a file transfer of 300 s to each task.
func travel(v *revision.View) {
	way := plan.Transfer{Bandwidth: 1e6}
	for i := range v.Problem.Work.Tasks {
		v.Problem.Work.Tasks[i].Bytes = 300e6
	}
	for i := range v.Problem.Sites {
		v.Problem.Sites[i].Transfer = way
	}
	for i := range v.Pilots {
		v.Pilots[i].Transfer = way
	}
}

// TestFilesOfWhatRuns: the remaining time of a running task includes the rest of its file transfers, which are not
// counted again; the transfers of other tasks are still pending.
func TestFilesOfWhatRuns(t *testing.T) {
	t.Parallel()
	v := scene(t)
	travel(&v)
	v.Now = 3 * time.Minute
	left := revision.Left(v)
	if first := left.Work.Tasks[0]; first.Runtime != 13*time.Minute || first.Bytes != plan.Here {
		t.Errorf("%+v, want 13m left of 15m, and no bytes", first)
	}
	if next := left.Work.Tasks[1]; next.Runtime != 10*time.Minute || next.Bytes != 300e6 {
		t.Errorf("%+v, want 10m and 300 MB", next)
	}
	if on := left.Present[0]; on.Transfer.Takes(300e6) != 5*time.Minute {
		t.Errorf("%+v, want a way of 5m", on)
	}
}

// TestDecide checks single decisions. Pilots that cost the same in half the time are added in twice the number.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		edit  func(*revision.View)
		add   int // cpus
		drop  []revision.Drop
		news  revision.News
		limit bool
	}{
		{name: "as planned", edit: func(*revision.View) {}},
		{name: "behind", edit: func(v *revision.View) { v.Goal.Deadline = corral.Seconds(31 * time.Minute) }, add: 2},
		{name: "behind for the way of files", edit: func(v *revision.View) {
			v.Goal.Deadline = corral.Seconds(50 * time.Minute)
			travel(v)
		}, add: 2},
		{name: "no worker for what one that is coming will take", edit: func(v *revision.View) {
			v.Goal.Deadline = corral.Seconds(31 * time.Minute)
			v.Pilots = append(v.Pilots, onePilot(1, revision.Queued))
		}},
		{name: "a wait that is a little longer", edit: func(v *revision.View) {
			v.Goal.Deadline = corral.Seconds(25 * time.Minute)
			v.Pilots = append(v.Pilots, onePilot(1, revision.Queued))
			v.Pilots[1].Wait, v.Pilots[1].Submit = 40*time.Second, 0
		}},
		{name: "a moment after another revision", edit: func(v *revision.View) {
			v.Goal.Deadline, v.Before.At = corral.Seconds(45*time.Minute), v.Now-4*time.Second
			v.Promise = 20 * time.Minute
		}},
		{name: "out of reach", edit: func(v *revision.View) { v.Goal.Deadline = corral.Seconds(8 * time.Minute) }, add: 3,
			news: revision.Late, limit: true},
		{name: "that was said", edit: func(v *revision.View) {
			v.Goal.Deadline, v.Before.Late = corral.Seconds(8*time.Minute), true
		}, add: 3, limit: true},
		{name: "within reach again", edit: func(v *revision.View) { v.Before.Late = true }, news: revision.InTime},
		{name: "nothing to come for one that is idle", edit: func(v *revision.View) {
			for i := range 3 {
				v.Tasks[i+1].State, v.Tasks[i+1].Took = corral.TaskDone, 10*time.Minute
			}
			v.Pilots = append(v.Pilots, onePilot(1, revision.Working), onePilot(2, revision.Planned))
			v.Pilots[1].Began, v.Pilots[1].Idle = 0, 10*time.Second
			v.Pilots[2].Submit = corral.Seconds(10 * time.Minute)
		}, drop: []revision.Drop{{Pilot: 1, Idle: true, Why: revision.Workless}, {Pilot: 2, Why: revision.Unneeded}}},
		{name: "idle, a moment after another revision", edit: func(v *revision.View) {
			for i := range 3 {
				v.Tasks[i+1].State, v.Tasks[i+1].Took = corral.TaskDone, 10*time.Minute
			}
			v.Pilots = append(v.Pilots, onePilot(1, revision.Working), onePilot(2, revision.Planned))
			v.Pilots[1].Began, v.Pilots[1].Idle, v.Before.At = 0, 10*time.Second, v.Now-4*time.Second
			v.Pilots[2].Submit = corral.Seconds(10 * time.Minute)
		}, drop: []revision.Drop{{Pilot: 1, Idle: true, Why: revision.Workless}}},
		{name: "the budget is used up", edit: func(v *revision.View) {
			v.Goal.Budget = &cost.Amount{Money: 17_000, Unit: cost.CPUHours} // 61 s of a cpu
		}, drop: []revision.Drop{{Pilot: 0, Cancel: true, Why: revision.Budget}}, news: revision.Broke},
		{name: "the budget suffices for one task", edit: func(v *revision.View) {
			v.Goal.Budget = &cost.Amount{Money: 183_500, Unit: cost.CPUHours} // 11 minutes, not enough for another task
		}, drop: []revision.Drop{{Pilot: 0, Why: revision.Budget}}, news: revision.Late},
		{name: "the budget suffices for all that is left", edit: func(v *revision.View) {
			v.Goal.Budget = &cost.Amount{Money: 183_500, Unit: cost.CPUHours}
			for i := range 3 {
				v.Tasks[i+1].State, v.Tasks[i+1].Took = corral.TaskDone, 10*time.Minute
			}
		}},
		{name: "no money for what would help", edit: func(v *revision.View) {
			v.Goal.Deadline = corral.Seconds(31 * time.Minute)
			v.Goal.Budget = &cost.Amount{Money: 690_000, Unit: cost.CPUHours} // slightly more than 41 minutes
		}, limit: true, news: revision.Late},
		{name: "a job of several tasks, none of which has been told to be done", edit: func(v *revision.View) {
			for i := range v.Tasks {
				v.Tasks[i] = v.Tasks[0]
			}
			v.Now, v.Goal.Deadline = 36*time.Minute, corral.Seconds(45*time.Minute)
		}},
		{name: "waiting for tasks costs more than the budget", edit: func(v *revision.View) {
			wait(t, v)
			v.Goal.Budget = &cost.Amount{Money: 950_000, Unit: cost.CPUHours} // 61 minutes of a cpu are 1.02
		}, drop: []revision.Drop{{Pilot: 2, Why: revision.Thrift}}},
		{name: "waiting costs more, but less than to pass on what is meant for a pilot", edit: func(v *revision.View) {
			wait(t, v)
			v.Goal.Budget, v.Problem.Cluster.Hop = &cost.Amount{Money: 950_000, Unit: cost.CPUHours}, 5*time.Minute
		}},
		{name: "waiting for tasks is within the budget", edit: func(v *revision.View) {
			wait(t, v)
			v.Goal.Budget = &cost.Amount{Money: 1_200_000, Unit: cost.CPUHours}
		}},
		{name: "waiting for tasks costs too much, but there is no time", edit: func(v *revision.View) {
			wait(t, v)
			v.Goal.Deadline, v.Promise = corral.Seconds(25*time.Minute), 21*time.Minute
			v.Goal.Budget = &cost.Amount{Money: 950_000, Unit: cost.CPUHours}
		}},
		{name: "all that is left waits at a worker", edit: func(v *revision.View) {
			for i := range 3 {
				v.Tasks[i+1] = v.Tasks[0]
			}
			v.Pilots = append(v.Pilots, onePilot(1, revision.Working))
			v.Pilots[1].Began, v.Pilots[1].Idle = 0, 10*time.Second
		}, drop: []revision.Drop{{Pilot: 1, Idle: true, Why: revision.Workless}}},
		{name: "behind where nothing more may be asked for", edit: func(v *revision.View) {
			v.Goal, v.Promise = plan.Goal{Objective: plan.Makespan}, 20*time.Minute
			v.Problem.Sites[0].CPUs = 0
		}, limit: true, news: revision.Limited},
		{name: "that it may not was said", edit: func(v *revision.View) {
			v.Goal, v.Promise = plan.Goal{Objective: plan.Makespan}, 20*time.Minute
			v.Problem.Sites[0].Pilots, v.Before.Limited = 0, true
		}, limit: true},
		{name: "behind, where more than may be asked for would not help", edit: func(v *revision.View) {
			v.Goal, v.Promise = plan.Goal{Objective: plan.Makespan}, 5*time.Minute
			v.Problem.Sites[0].CPUs = 0
			for i := range 3 {
				v.Tasks[i+1].State, v.Tasks[i+1].Took = corral.TaskDone, 10*time.Minute
			}
		}, limit: true},
		{name: "no site", edit: func(v *revision.View) {
			v.Goal, v.Promise = plan.Goal{Objective: plan.Makespan}, 20*time.Minute
			v.Problem.Sites, v.Without = nil, []string{"site far: its price is in USD, the plan's in ch"}
		}, limit: true, news: revision.Limited},
		{name: "no pilot is large enough", edit: func(v *revision.View) {
			v.Goal = plan.Goal{Objective: plan.Makespan}
			v.Problem.Work.Tasks[3].Needs.CPUs = 9
		}, limit: true, news: revision.Limited},
		{name: "others' workers help", edit: func(v *revision.View) {
			v.Goal.Deadline = corral.Seconds(31 * time.Minute)
			v.Problem.Present = []plan.Present{{Hosts: 1, Host: onePilot(1, 0).Host, End: time.Hour, Keep: time.Hour}}
		}},
		{name: "its walltime ends soon after the next task", edit: func(v *revision.View) {
			v.Pilots[0].Walltime = corral.Seconds(23 * time.Minute) // 10 + 10 minutes, and two more until the margin
			v.Tasks[0].Since, v.Now = time.Minute, 10*time.Minute
		}, add: 3, drop: []revision.Drop{{Pilot: 0, Why: revision.Walltime}}},
		{name: "the pilot is lost", edit: func(v *revision.View) {
			v.Pilots[0].Phase, v.Pilots[0].Ended = revision.Gone, 30*time.Second
			v.Tasks[0] = revision.Task{State: corral.TaskReady, Pilot: -1}
		}, add: 4},
	} {
		v := scene(t)
		tc.edit(&v)
		d, err := revision.Decide(v)
		if err != nil {
			t.Fatal(err)
		}
		cpus := 0
		for _, q := range d.Add {
			cpus += q.HeldCPUs()
		}
		same := len(d.Drop) == len(tc.drop)
		for i := range tc.drop {
			same = same && d.Drop[i] == tc.drop[i]
		}
		if cpus != tc.add || !same || d.News != tc.news || (len(d.Limits) > 0) != tc.limit {
			t.Errorf("%s: %+v, want %d cpus more, drops %+v, news %q, a limit: %v", tc.name, d, tc.add, tc.drop, tc.news,
				tc.limit)
		}
	}
}

// TestALimitIsNamed: a decision's reasons name the limits that prevent useful pilots.
func TestALimitIsNamed(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*plan.Site){
		"site hpc provides 0 more cpu(s)":             func(s *plan.Site) { s.CPUs = 0 },
		"site hpc accepts 0 more pilot(s)":            func(s *plan.Site) { s.CPUs, s.Pilots = 1, 0 },
		"site hpc has 0.001ch of its allocation left": func(s *plan.Site) { s.Left = new(cost.Money); *s.Left = 1000 },
	} {
		v := scene(t)
		v.Goal, v.Promise = plan.Goal{Objective: plan.Makespan}, 20*time.Minute
		edit(&v.Problem.Sites[0])
		d, err := revision.Decide(v)
		if err != nil || !slices.Equal(d.Limits, []string{want}) || d.News != revision.Limited || len(d.Reasons) != 1 {
			t.Errorf("%+v, %v; want the limit %q", d, err, want)
		}
	}
}

// TestASearchThatTakesTooLong: a cancelled search prevents adding pilots, but no other decision.
func TestASearchThatTakesTooLong(t *testing.T) {
	t.Parallel()
	v := scene(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.Context, v.Goal.Deadline = ctx, corral.Seconds(31*time.Minute)
	d, err := revision.Decide(v)
	if err != nil || len(d.Add) > 0 || d.News != revision.Nothing {
		t.Errorf("behind: %+v, %v; want that nothing is added, nor said before the search has ended by itself", d, err)
	}
	near := v
	near.Now = 31*time.Minute - 5*time.Second
	if d, err = revision.Decide(near); err != nil || len(d.Add) > 0 || d.News != revision.Late {
		t.Errorf("just before the deadline: %+v, %v; want that it is late", d, err)
	}
	v.Goal.Budget = &cost.Amount{Money: 17_000, Unit: cost.CPUHours} // 61 s of a cpu
	if d, err = revision.Decide(v); err != nil || len(d.Drop) != 1 || !d.Drop[0].Cancel {
		t.Errorf("the budget is used up: %+v, %v; want the pilot dropped", d, err)
	}
}

// TestTasksWithoutAPilotHaveNoEnd: if no pilot will take the remaining tasks, the end of the running ones is not
// reported as late.
func TestTasksWithoutAPilotHaveNoEnd(t *testing.T) {
	t.Parallel()
	v := scene(t)
	v.Problem.Sites = nil
	v.Pilots[0].Phase, v.Pilots[0].Ended = revision.Gone, 30*time.Second
	v.Tasks[0] = revision.Task{State: corral.TaskReady, Pilot: -1}
	d, err := revision.Decide(v)
	if want := "the deadline of 1h0m0s will be missed: 4 task(s) fit no present pilot"; err != nil ||
		d.News != revision.Late || !slices.Contains(d.Reasons, want) {
		t.Errorf("%+v, %v; want %q", d, err, want)
	}
}
