//go:build soak

package planner

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan"
)

// The lower bound does not exceed the cpus that a plan needs, even if files are transferred.
func TestBoundWithFilesThatTravel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		problem, pl := feasible(t, rng, 30)
		if len(pl.Front) == 0 {
			return
		}
		goal := plan.Goal{Objective: plan.CPUs, Deadline: pl.Makespan + pl.Makespan/10}
		least, err := Make(problem, goal, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if least.Feasible && least.LowerBound != nil && *least.LowerBound > least.PeakCPUs {
			rt.Fatalf("the bound is %d cpus, the plan has %d", *least.LowerBound, least.PeakCPUs)
		}
	})
}
