package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
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
		glance := func(_ *plan.Plan, care Care) float64 {
			if care != Glance {
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

// TestABudgetIsJudged: a budget without a deadline is judged like a deadline: a plan that costs less is safer.
func TestABudgetIsJudged(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, 20*time.Minute, 12), Sites: []plan.Site{cloud()}}
	for safe, want := range map[cost.Money]string{
		12: "", 6: "", 3: "no plan costs 12ch or less in a share of 0.9 of simulated outcomes: the safest does in 0.500",
	} {
		judge := func(pl *plan.Plan, _ Care) float64 {
			if pl.Cost.Money > safe*1_000_000 {
				return 0.5
			}
			return 0.95
		}
		goal := plan.Goal{Objective: plan.Makespan, Confidence: 0.9, Budget: &cost.Amount{Money: 12_000_000, Unit: cost.CPUHours}}
		pl, err := Make(problem, goal, Options{Judge: judge})
		switch {
		case err != nil || pl.Feasible != (want == "") || !strings.Contains(pl.Reasons[0], want):
			t.Errorf("safe up to %d: %v, %q", safe, err, pl.Reasons)
		case pl.Feasible && (pl.Cost.Money > safe*1_000_000 || pl.Confidence == nil || !pl.Confidence.Met()):
			t.Errorf("safe up to %d: it costs %s, confidence %+v", safe, pl.Cost, pl.Confidence)
		}
	}
}

// TestAnotherBoundReachesTheConfidence: the value of a bound that is proposed reaches the goal with its confidence. If
// no value does, the answer says so, and gives the confidence of the plan.
func TestAnotherBoundReachesTheConfidence(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, 10*time.Minute, 12), Sites: []plan.Site{cloud()}}
	problem.Sites[0].Host.CPUs = 2
	for i := range problem.Work.Tasks {
		problem.Work.Tasks[i].Needs.CPUs = 2
	}
	for name, tt := range map[string]struct {
		sure     int // cpus from which on nearly all outcomes are in time
		deadline time.Duration
		want     string
	}{
		"the nearest value by estimates":   {0, time.Hour, "--max-cpus 4 is within reach"},
		"a larger value":                   {6, time.Hour, "--max-cpus 6 is within reach"},
		"no value":                         {1000, time.Hour, "within reach by the estimates, but in a share of 0.500 of simulated outcomes, not 0.95"},
		"not even a deadline within reach": {0, time.Minute, "by the estimates, not with --confidence 0.95"},
	} {
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(tt.deadline), Confidence: 0.95,
			Bounds: plan.Bounds{MaxCPUs: 1}}
		judge := func(pl *plan.Plan, _ Care) float64 {
			if pl.PeakCPUs < tt.sure {
				return 0.5
			}
			return 0.99
		}
		pl, err := Make(problem, goal, Options{Judge: judge})
		if err != nil || pl.Feasible || !strings.Contains(pl.Reasons[0], tt.want) {
			t.Errorf("%s: %v, %q, want %q", name, err, pl.Reasons, tt.want)
		}
		if c := pl.Nearest.Confidence; tt.deadline == time.Hour && (c == nil || c.Met() != (tt.sure < 1000)) {
			t.Errorf("%s: confidence %+v", name, c)
		}
	}
}

// TestPilotsThatStayAreTried: if plans whose pilots leave for lack of work are not sure enough, pilots that stay to the
// end of the run are.
func TestPilotsThatStayAreTried(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, 10*time.Minute, 12), Sites: []plan.Site{cloud()}}
	for _, tt := range []struct{ leave, stay float64 }{{0.5, 0.99}, {0.99, 0.99}, {0.5, 0.6}} {
		judge := func(pl *plan.Plan, _ Care) float64 {
			for _, q := range pl.Pilots {
				if !q.Throughout() {
					return tt.leave
				}
			}
			return tt.stay
		}
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(time.Hour), Confidence: 0.9}
		pl, err := Make(problem, goal, Options{Judge: judge})
		if err != nil || pl.Feasible != (max(tt.leave, tt.stay) >= 0.9) {
			t.Fatalf("%+v: %v, feasible %v: %q", tt, err, pl.Feasible, pl.Reasons)
		}
		near := pl
		if !pl.Feasible {
			near = pl.Nearest
		}
		if got, want := near.Confidence.Reached, max(tt.leave, tt.stay); got != want {
			t.Errorf("%+v: the confidence is %g, want %g", tt, got, want)
		}
	}
}
