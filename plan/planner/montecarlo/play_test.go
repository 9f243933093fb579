package montecarlo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// If waits and runtimes are exactly as estimated, every plan is executed to its end, when it says and at the cost it
// says: with walltimes shorter than the workflow, pauses between stages, several sites and billing periods, alone and beside
// pilots that are present, which run tasks, come later or leave soon.
func TestPlansComeTrue(t *testing.T) {
	t.Parallel()
	plans, missed := 0, 0
	for seed := range uint64(6) {
		m := drawn(t, seed)
		if seed >= 3 {
			plantest.AddPresent(&m.Problem, seed)
		}
		made, refused := comeTrue(t, m, seed)
		plans, missed = plans+made, missed+refused
	}
	if plans < 32 || missed > plans/10 {
		t.Errorf("%d plans, %d goals without one", plans, missed)
	}
}

// comeTrue plans a drawn problem for several goals that it can reach, and returns the numbers of plans and of goals for
// which there is none.
func comeTrue(t *testing.T, m montecarlo.Model, seed uint64) (plans, refused int) {
	t.Helper()
	goals := []plan.Goal{{Objective: plan.Makespan}, {Objective: plan.Cost}, {Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}}
	for i := 0; i < len(goals); i++ {
		pl, err := m.Make(t.Context(), goals[i], planner.Options{Seed: seed})
		if err != nil {
			t.Errorf("seed %d, %+v: %v", seed, goals[i], err)
			continue
		}
		if !pl.Feasible {
			t.Logf("seed %d, %+v: %q", seed, goals[i], pl.Reasons)
			refused++
			continue
		}
		plans++
		if i == 0 {
			budget := cost.Amount{Money: pl.Cost.Money, Unit: pl.Cost.Unit}
			goals = append(goals, plan.Goal{Objective: plan.Makespan, Budget: &budget},
				plan.Goal{Objective: plan.Cost, Deadline: pl.Makespan},
				plan.Goal{Objective: plan.Cost, Deadline: 2 * pl.Makespan},
				plan.Goal{Objective: plan.CPUs, Deadline: 2 * pl.Makespan})
		}
		played, ok := m.Play(pl)
		if !ok {
			t.Errorf("seed %d, %+v: a task is left undone", seed, goals[i])
			continue
		}
		if diff := cmp.Diff(pl.Point, played.Point); diff != "" {
			t.Errorf("seed %d, %+v: it is executed otherwise than planned: %s", seed, goals[i], diff)
		}
		if err := validator.Check(m.Problem, pl); err != nil {
			t.Errorf("seed %d, %+v: %v", seed, goals[i], err)
		}
	}
	return plans, refused
}

// drawn returns the model of a drawn problem.
func drawn(t *testing.T, seed uint64) montecarlo.Model {
	t.Helper()
	p, err := plantest.Problem(seed)
	if err != nil {
		t.Fatal(err)
	}
	return montecarlo.Model{Problem: p}
}

// A plan's execution is the same again, and has no pilots without tasks.
func TestPlayIsSettled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		m := drawn(t, seed)
		pl, err := planner.Make(m.Problem, plan.Goal{Objective: plan.Makespan},
			planner.Options{Clustering: &clustering.Rule{}})
		if err != nil {
			t.Fatal(err)
		}
		if !pl.Feasible {
			continue // a task is longer than all walltimes
		}
		once, ok := m.Play(pl)
		if !ok {
			continue
		}
		busy := map[int]bool{}
		for _, at := range once.Schedule {
			busy[at.Pilot] = true
		}
		if twice, ok := m.Play(once); !ok || len(busy) != len(once.Pilots) {
			t.Errorf("seed %d: %d of %d pilots have tasks", seed, len(busy), len(once.Pilots))
		} else if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}
