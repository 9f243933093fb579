//go:build soak

package montecarlo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
)

// The results contain all nine policies, with their defaults and with the best parameters of their sweeps, and all
// complete the workflow; the plan is the first result.
func TestCompare(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(7, 8)), 40)
	pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Compare(t.Context(), pl, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range all {
		seen[r.Policy]++
		t.Logf("%-12s %-32s %10s %8.2f ch  waste %5.1f %% %4d requests, %.2f", r.Policy, r.Parameters, r.Makespan,
			r.CoreHours, 100*r.Waste, r.Requests, r.Finished)
		if r.Makespan <= 0 || r.CoreHours <= 0 || r.Requests < 1 || r.Waste < 0 || !r.Planned && r.Finished < 1 {
			t.Errorf("%+v", r)
		}
	}
	for _, policy := range []string{"placeholder", "static", "greedy", "falkon", "glideinWMS", "cobald", "hyperqueue",
		"parsl"} {
		if seen[policy] != 2 {
			t.Errorf("%s is there %d times, want its defaults and the best of its sweep", policy, seen[policy])
		}
	}
	if !all[0].Chosen || seen["none"] != 1 {
		t.Errorf("%+v", all)
	}
}
