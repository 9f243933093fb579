package planner

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// TestNearlySureAtAGlance: a judge that evaluates few outcomes may wrongly find that no plan suffices. A plan is
// refused only after all outcomes have been evaluated.
func TestNearlySureAtAGlance(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, 10*time.Minute, 4), Sites: []plan.Site{cloud()}}
	for _, tt := range []struct {
		exact float64
		want  bool
	}{{0.954, true}, {0.949, false}} {
		glance := func(_ *plan.Plan, exact bool) float64 {
			if exact {
				return tt.exact
			}
			return 0.94
		}
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(time.Hour), Confidence: 0.95}
		pl, err := Make(problem, goal, Options{Judge: glance})
		if err != nil || pl.Feasible != tt.want {
			t.Errorf("%g of all outcomes are in time: %v, feasible %v (%q), want %v", tt.exact, err, pl.Feasible,
				pl.Reasons, tt.want)
		}
	}
}
