package cloud_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/planner/spss"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// A guarded plan stays within the budget in all cases, and completes all admitted workflows if
// tasks take their estimated times and machines are ready in time.
func TestTheGuardKeepsTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		x := draw(rng)
		r := spss.Default(x.budget, x.Deadline, x.Terms)
		if rng.IntN(2) == 0 {
			r.Delay = x.delay
		}
		plan := r.Make(x.Ensemble)
		if got := cloud.Online(x.Scenario, spss.NewGuard(r, x.Ensemble, plan)); got.Cost > x.budget {
			rt.Fatalf("cost %s of %s: %+v", got.Cost, x.budget, got.Held)
		}
		if got := cloud.Online(x.Scenario, spss.NewGuard(r, x.Ensemble, plan).Shared()); got.Cost > x.budget {
			rt.Fatalf("shared, cost %s of %s: %+v", got.Cost, x.budget, got.Held)
		}
		x.Runtime, x.Fails, x.Speed = nil, nil, nil
		x.Delay = func(int) time.Duration { return r.Delay }
		got := cloud.Online(x.Scenario, spss.NewGuard(r, x.Ensemble, plan))
		for k, admitted := range plan.Admitted {
			if done := got.Completed[k] == '1'; done != admitted {
				rt.Fatalf("workflow %d: admitted %v, completed %v at %s of %s", k, admitted, done, got.Cost, plan.Cost)
			}
		}
	})
}

// The chosen candidate is the best of the simulated candidates.
func TestTheBestIsChosen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		x := draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)))
		all := rehearsal.Choose(rehearsal.Problem{Ensemble: x.Ensemble, Budget: x.budget, Deadline: x.Deadline,
			Terms: x.Terms, Delay: x.delay})
		best := slices.MaxFunc(all, func(a, b rehearsal.Candidate) int {
			return a.Played[0].Completed.Compare(b.Played[0].Completed)
		})
		if all[0].Played[0].Completed != best.Played[0].Completed {
			rt.Fatalf("%s with %s is chosen, %s has %s", all[0], all[0].Played[0].Completed, best,
				best.Played[0].Completed)
		}
		s := cloud.Scenario{Ensemble: x.Ensemble, Deadline: x.Deadline, Terms: x.Terms,
			Delay: func(int) time.Duration { return x.delay }}
		if got := cloud.Online(s, all[0].Policy); got.Completed != all[0].Played[0].Completed || got.Cost > x.budget {
			rt.Fatalf("in earnest %s at %s, played %s", got.Completed, got.Cost, all[0].Played[0].Completed)
		}
	})
}
