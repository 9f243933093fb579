package montecarlo_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
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
	for seed := range uint64(20) {
		m := drawn(t, seed)
		if seed >= 10 {
			addPresent(&m.Problem, rand.New(rand.NewPCG(seed, 1)))
		}
		made, refused := comeTrue(t, m, seed)
		plans, missed = plans+made, missed+refused
	}
	if plans < 120 || missed > plans/20 {
		t.Errorf("%d plans, %d goals without one", plans, missed)
	}
}

// comeTrue plans a drawn problem for several goals that it can reach, and returns the numbers of plans and of goals for
// which there is none.
func comeTrue(t *testing.T, m montecarlo.Model, seed uint64) (plans, refused int) {
	t.Helper()
	goals := []plan.Goal{{Objective: plan.Makespan}, {Objective: plan.Cost}, {Objective: plan.Tradeoff, Tradeoff: 0.5}}
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

// addPresent adds pilots to a problem, on whose hosts some of its first tasks already run.
func addPresent(p *plan.Problem, rng *rand.Rand) {
	minutes := func(most int) time.Duration { return time.Duration(rng.IntN(most*60)) * time.Second }
	begun := 0
	for range 1 + rng.IntN(3) {
		q := plan.Present{Site: p.Sites[0].Name, Hosts: 1 + rng.IntN(2), Keep: plan.Unbounded, Pace: p.Sites[0].Pace,
			Host: corral.Resources{CPUs: 1 + rng.IntN(8), MemoryMiB: 64_000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}}
		if q.End = 10*time.Minute + minutes(300); rng.IntN(2) == 0 {
			q.Keep = time.Minute + minutes(30)
		}
		switch rng.IntN(3) {
		case 0:
			q.Ready = minutes(20)
		case 1:
			q.Idle = minutes(1)
		default:
			if q.End -= 10 * time.Minute; rng.IntN(4) == 0 {
				q.End = 0 // it leaves after its tasks
			}
			for host := range q.Hosts {
				left := q.Host
				for ; begun < len(p.Work.Tasks) && len(p.Work.Graph.Parents(begun)) == 0 && rng.IntN(4) > 0; begun++ {
					t := &p.Work.Tasks[begun]
					if !t.Needs.FitIn(left) {
						break
					}
					left = left.Minus(t.Needs)
					t.Runtime, t.Bytes = (t.Runtime / 2).Round(time.Millisecond), plan.Here
					q.Running = append(q.Running, plan.Running{Task: begun, Host: host})
				}
			}
		}
		p.Present = append(p.Present, q)
	}
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
