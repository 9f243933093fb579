package planner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/plantest"
)

// An expiring context is cancelled when it was asked a number of times.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (x *expiring) Err() error {
	if x.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A search that is cancelled at any time returns the cause, whether there is a plan or not.
func TestCancelledAtAnyTime(t *testing.T) {
	t.Parallel()
	w, err := plantest.Draw("sipht", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem := plan.Problem{Work: w, Sites: []plan.Site{cloud()}}
	for _, goal := range []plan.Goal{{Objective: plan.Cost}, {Objective: plan.Cost, Bounds: plan.Bounds{MaxPilots: 1}, Deadline: 1}} {
		for step := int64(0); ; step += 1 + step/8 {
			ctx := &expiring{Context: context.Background()}
			ctx.left.Store(step)
			_, err := Make(problem, goal, Options{Context: ctx})
			if ctx.left.Load() >= 0 {
				break // it was not cancelled
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%+v, cancelled after %d questions: %v", goal, step, err)
			}
		}
	}
}
