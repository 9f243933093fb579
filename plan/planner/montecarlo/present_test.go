package montecarlo_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
)

// present returns a pilot of one host that stays for the given time.
func present(cpus int, stay time.Duration) plan.Present {
	return plan.Present{Site: "elsewhere", Hosts: 1, End: stay, Keep: plan.Unbounded,
		Host: corral.Resources{CPUs: cpus, MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}}
}

// If the present workers do all the work in time, a plan with a confidence requests no pilots, and its outcomes cost
// and waste nothing.
func TestPresentPilotsCountInOutcomes(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(7, 8)), 40)
	m.Exact = 50
	m.Present = []plan.Present{present(0, time.Hour), present(8, 48*time.Hour), present(8, 48*time.Hour)}
	goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(24 * time.Hour), Confidence: 0.9}
	pl, err := m.Make(t.Context(), goal, planner.Options{})
	if err != nil || !pl.Feasible || len(pl.Pilots) > 0 || pl.Confidence.Reached != 1 {
		t.Fatalf("%+v, %v", pl, err)
	}
	for _, o := range m.Outcomes(pl, 5, 1) {
		if !o.Finished || o.Makespan <= 0 || o.Requests != 0 || o.Cost != 0 || o.Held != 0 || o.Work != 0 {
			t.Errorf("%+v", o)
		}
	}
	if all, err := m.Compare(t.Context(), pl, 1); all != nil || err != nil {
		t.Errorf("without a pilot of the plan, no policy has a shape to ask for: %+v", all)
	}
}

// Workers that leave soon start no task that would end after they leave, and the plan's pilots run the others. Their
// waste includes only the tasks that they run.
func TestPresentPilotsLeave(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(7, 8)), 40)
	m.Spread, m.Sites[0].Waits = sim.Spread{}, nil // nothing is random
	for _, stay := range []time.Duration{10 * time.Minute, 30 * time.Minute} {
		m.Present = []plan.Present{present(4, stay)}
		pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Makespan}, planner.Options{})
		if err != nil || !pl.Feasible || len(pl.Pilots) == 0 {
			t.Fatalf("%+v, %v", pl, err)
		}
		all := m.Outcomes(pl, 1, 1)
		for _, o := range all {
			if !o.Finished || o.Requests != len(pl.Pilots) || o.Work > o.Held || o.Work <= 0 {
				t.Errorf("they stay for %s: %+v", stay, o)
			}
		}
		if waste := montecarlo.Summarize(all, pl.Goal, "").Waste; waste < 0 || waste >= 1 {
			t.Errorf("they stay for %s: waste %g", stay, waste)
		}
	}
}
