package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// TestLimitsAreNamed: a plan reports each limit of its sites that restricted it once, with its numbers. A plan
// restricted by the rest of an allocation stays within it; if there is no such plan, the answer reports how little is
// left.
func TestLimitsAreNamed(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, time.Hour, 40), Sites: []plan.Site{cloud()}}
	problem.Sites[0].CPUs = 4
	left := cost.Money(40_000_000)
	problem.Sites[0].Left = &left
	p, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Shape: 1})
	if err != nil || !p.Feasible || p.Cost.Money > left {
		t.Fatalf("%+v, %v", p, err)
	}
	if said := strings.Join(p.Limits, "\n"); strings.Count(said, "at most 4 cpus at once, but 40 could be of use") != 1 {
		t.Errorf("limits %q", said)
	}
	left = 1
	p, err = Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Shape: 1})
	if err != nil || p.Feasible || !strings.Contains(p.Reasons[0], "what is left of the allocation at site") ||
		strings.Count(strings.Join(p.Limits, "\n"), "what is left of the allocation") != 1 {
		t.Errorf("with nothing left: %+v, %v", p, err)
	}
}
