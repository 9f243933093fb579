package montecarlo_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Most drawn plans complete the workflow in nearly every outcome although runtimes are estimates, without revisions.
func TestWalltimesAreSafe(t *testing.T) {
	t.Parallel()
	sum, plans := 0.0, 0
	for seed := range uint64(8) {
		m := drawn(t, seed)
		m.Spread, m.Exact = montecarlo.DefaultSpread, 100
		pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Cost}, planner.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if pl.Feasible {
			odds := m.Odds(t.Context(), pl, seed+100)
			sum, plans = sum+odds.Finishes.Share, plans+1
		}
	}
	if plans < 6 || sum/float64(plans) < 0.9 {
		t.Errorf("%d plans finish in a share of %.3f of outcomes; want 0.9", plans, sum/float64(plans))
	}
}

// Where a longer request waits longer, it is made only as far as it pays: here the pilot of a task of ten minutes waits
// an hour unless it requests less than 30 minutes.
func TestLongWalltimesWait(t *testing.T) {
	t.Parallel()
	g, err := dag.New(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := montecarlo.Model{Spread: montecarlo.DefaultSpread, Problem: plan.Problem{
		Work:  plan.Work{Tasks: []plan.Task{{ID: "t", Runtime: 10 * time.Minute, Needs: corral.Resources{CPUs: 1}}}, Graph: g},
		Sites: []plan.Site{plantest.Queue("hpc", time.Minute)},
	}}
	s := &m.Sites[0]
	s.Waits = nil
	for wait, want := range map[time.Duration]time.Duration{time.Minute: 24 * time.Hour, time.Hour: 30 * time.Minute} {
		s.Wait = func(x plan.Shape) time.Duration {
			if x.Walltime >= 30*time.Minute {
				return wait
			}
			return time.Minute
		}
		pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Makespan}, planner.Options{})
		if err != nil || !pl.Feasible {
			t.Fatalf("%+v, %v", pl, err)
		}
		q := pl.Pilots[0]
		if time.Duration(q.Walltime) > want || q.Walltime < q.End-q.Start {
			t.Errorf("with waits of %s a pilot held for %s requests %s; want at most %s", wait, q.End-q.Start, q.Walltime, want)
		}
	}
}

// A pilot's walltime suffices for the longest task that fits it, in whole minutes, within the limit of its site.
func TestWalltimesHoldTheLongestTask(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		m := drawn(t, seed)
		pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Makespan}, planner.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range pl.Pilots {
			s := m.Site(q.Site, q.Queue)
			var longest time.Duration
			for _, task := range m.Work.Tasks {
				if task.Needs.FitIn(q.Host()) {
					longest = max(longest, s.Takes(task))
				}
			}
			if w := time.Duration(q.Walltime); w > s.Walltime || w < min(s.Walltime, longest+s.Overhead+s.Margin) {
				t.Errorf("seed %d, pilot %d: walltime %s, longest task %s, limit %s", seed, i, w, longest, s.Walltime)
			}
		}
	}
}
