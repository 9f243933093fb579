package provision

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/google/go-cmp/cmp"
)

// inTwo returns a scene in which task a takes a minute by the plan, and then task b begins on a pilot that is submitted
// after 50 s. b does not fit the pilot of a, which has a worker.
func inTwo(t *testing.T, auto bool) *scene {
	t.Helper()
	const schedule = `,"schedule":[{"task":"a","pilot":0,"host":0,"start_s":0,"end_s":60},` +
		`{"task":"b","pilot":1,"host":0,"start_s":60,"end_s":120}],"pilots":[` +
		`{"site":"local","hosts":1,"cpus":1,"walltime_s":3600,"submit_s":0,"start_s":0,"ready_s":0,"end_s":60},` +
		`{"site":"local","hosts":1,"cpus":2,"walltime_s":3600,"submit_s":50,"start_s":55,"ready_s":60,"end_s":120}]`
	s := newScene(t, inTime+schedule, auto)
	graph, err := dag.New(2, [][2]int{{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	s.flow.Graph, s.flow.Tasks[1].Resources.CPUs = graph, 2
	labels := labelled(s.plan)
	labels["pilot"] = "1"
	s.write(func(tx *store.Tx) error {
		_, err := tx.CreateGlidein(corral.Glidein{Owner: "ada", Site: s.glidein.Site, Cluster: s.plan.Cluster,
			Shape:     corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: 1000, Walltime: corral.Seconds(time.Hour)},
			NotBefore: s.plan.BeganAt.Add(50 * time.Second), Labels: labels})
		return err
	})
	s.works(1)
	s.progress[1].State = corral.TaskWaiting
	return s
}

// due returns when the pilot of b is due, after the plan's beginning.
func (s *scene) due() time.Duration {
	return s.pilots()[1].NotBefore.Sub(s.plan.BeganAt).Round(100 * time.Millisecond)
}

// TestLaterPilotsWaitForTheRun: if a begins half a minute late, the pilot of b is submitted half a minute later. As soon
// as a is done, the pilot comes. This does not depend on whether the plan is automatic.
func TestLaterPilotsWaitForTheRun(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{true, false} {
		s := inTwo(t, auto)
		r := s.reviser()
		s.progress[0] = execution.Progress{State: corral.TaskRunning, Worker: "tag/0", Since: s.plan.BeganAt.Add(30 * time.Second)}
		for _, step := range []struct {
			name     string
			at, want time.Duration
			done     bool
		}{
			{"long before its time", 31 * time.Second, 50 * time.Second, false},
			{"at its time", 49 * time.Second, 80 * time.Second, false},
			{"while the task runs", 60 * time.Second, 80 * time.Second, false},
			{"once the task is done", 65 * time.Second, 65 * time.Second, true},
		} {
			if step.done {
				s.progress[0] = execution.Progress{State: corral.TaskDone, Worker: "tag/0", Took: 35 * time.Second}
				s.progress[1].State = corral.TaskReady
			}
			s.look(r, step.at)
			if got := s.due(); got != step.want {
				t.Errorf("automatic %v, %s: the pilot is due after %s, want %s", auto, step.name, got, step.want)
			}
		}
	}
}

// TestARunThatWaits: while a waits for its worker, the forecast of b moves with the clock. The pilot of b is not moved at
// each look, but when it is about to be submitted. Only if the run waits for long is it submitted.
func TestARunThatWaits(t *testing.T) {
	t.Parallel()
	s := inTwo(t, true)
	r := s.reviser()
	for _, step := range []struct{ at, want time.Duration }{
		{48 * time.Second, 98 * time.Second}, {50 * time.Second, 98 * time.Second}, {77 * time.Second, 98 * time.Second},
		{79 * time.Second, 79 * time.Second},
	} {
		s.look(r, step.at)
		if got := s.due(); got != step.want {
			t.Errorf("at %s the pilot is due after %s, want %s", step.at, got, step.want)
		}
	}
}

// TestEstimatesAreForTheFastestHosts: a task that takes two minutes at a site of speed 0.5 has an estimate of a minute:
// the cluster divides it by the speed of the worker.
func TestEstimatesAreForTheFastestHosts(t *testing.T) {
	t.Parallel()
	s := newScene(t, inTime+`,"assumed":{"queues":[{"site":"local","speed":0.5}]},"schedule":[{"task":"a","pilot":0,"host":0,"start_s":0,`+
		`"end_s":120}],"pilots":[{"site":"local","hosts":1,"cpus":1,"walltime_s":3600,"end_s":120}]`, true)
	got, err := Runtimes(s.db, s.plan)
	if err != nil || got["a"] != time.Minute {
		t.Errorf("%v, %v; want a minute", got, err)
	}
}

// TestFirstsOf: a hedge waits for the tasks of the pilot that it hedges, and a plan that begins later than it was made,
// but must not submit before an instant, submits its pilots sooner.
func TestFirstsOf(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	working := 1
	p := &plan.Plan{
		Pilots: []plan.Pilot{{}, {Submit: sec(50)}, {Submit: sec(60), Hedges: &working}, {Submit: sec(70), Follows: &working}},
		Schedule: []plan.Placement{{ID: "a", Start: sec(10)}, {ID: "c", Pilot: 1, Start: sec(110)},
			{ID: "b", Pilot: 1, Start: sec(100)}, {ID: "d", Pilot: 3, Start: sec(200)}},
	}
	row := corral.Plan{BeganAt: began}
	want := map[int]first{1: {[]string{"b"}, 50 * time.Second, 50 * time.Second},
		2: {[]string{"b"}, 60 * time.Second, 40 * time.Second}}
	if diff := cmp.Diff(want, firstsOf(row, p), cmp.AllowUnexported(first{})); diff != "" {
		t.Error(diff)
	}
	p.Goal.NotBefore, p.Goal.NotBeforeAt = sec(40), began.Add(10*time.Second)
	if got := firstsOf(row, p)[1].submit; got != 20*time.Second {
		t.Errorf("the pilot is submitted after %s, want 20s", got)
	}
}

func sec(n int) corral.Seconds { return corral.Seconds(time.Duration(n) * time.Second) }
