package planner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// If the first pilot waits for an hour and takes half an hour to become ready, both reduce the time for the work.
func TestLowerBoundCountsFromTheFirstPilotThatIsReady(t *testing.T) {
	s := cloud()
	s.Overhead = time.Hour / 2
	s.Wait = func(plan.Shape) time.Duration { return time.Hour }
	goal := plan.Goal{Objective: plan.CPUs, Deadline: corral.Seconds(7 * time.Hour / 2)}
	pl, err := Make(plan.Problem{Work: stages(t, time.Hour, 8), Sites: []plan.Site{s}}, goal, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pl.LowerBound == nil || *pl.LowerBound != 4 || pl.PeakCPUs != 4 {
		t.Errorf("at least %v cpus, want 4; the plan has %d", pl.LowerBound, pl.PeakCPUs)
	}
}

// The bound does not exceed the peak of any plan, for any objective and any sites.
func TestNoPlanHasFewerCPUsThanTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		problem, pl := feasible(t, rng, 8)
		goal := pl.Goal
		goal.Deadline = pl.Makespan + pl.Makespan*corral.Seconds(rng.IntN(4))/2
		pl, err := Make(problem, goal, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if pl.LowerBound == nil || pl.Feasible && *pl.LowerBound > pl.PeakCPUs {
			rt.Fatalf("at least %v cpus, the plan has %d", pl.LowerBound, pl.PeakCPUs)
		}
	})
}
