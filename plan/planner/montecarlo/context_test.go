package montecarlo_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/sim"
)

// Planning, judging and comparing end when their context is cancelled, and return the cause.
func TestPlanningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(7, 8)), 40)
	tradeoff := plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}
	pl, err := m.Make(t.Context(), tradeoff, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sure := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(24 * time.Hour), Confidence: 0.9}
	narrow := plan.Goal{Objective: plan.CPUs, Deadline: corral.Seconds(24 * time.Hour)}
	gone := errors.New("the client is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, goal := range []plan.Goal{tradeoff, sure, narrow} {
		if pl, err := m.Make(ctx, goal, planner.Options{}); pl != nil || !errors.Is(err, gone) {
			t.Errorf("%+v: %+v, %v", goal, pl, err)
		}
	}
	if all, err := m.Compare(ctx, pl, 1); all != nil || !errors.Is(err, gone) {
		t.Errorf("compared: %+v, %v", all, err)
	}

	// The context ends after the first outcomes have been judged.
	ctx, cancel = context.WithCancelCause(t.Context())
	m.Spread.Law = "uniform"
	quantile := m.Sites[0].Waits
	m.Sites[0].Waits = func(shape plan.Shape, share float64) time.Duration {
		cancel(gone)
		return quantile(shape, share)
	}
	if pl, err := m.Make(ctx, sure, planner.Options{}); pl != nil || !errors.Is(err, gone) {
		t.Errorf("in the middle: %+v, %v", pl, err)
	}
}

// No outcome is simulated after the context has been cancelled.
func TestRunsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := random(t, rand.New(rand.NewPCG(7, 8)), 10)
	played := 0
	sim.Runs(ctx, 1000, 1, func(int) sim.Scenario {
		if played++; played == 3 {
			cancel()
		}
		return m.Scenario(&plan.Plan{}, 1)
	}, func(int, *sim.Trace) int { return 0 })
	if played != 3 {
		t.Errorf("%d outcomes are played, want those until the context ends", played)
	}
}
