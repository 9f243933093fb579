package planner

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// TestLeaving: a pilot is held, and paid for, until its workers have left. This is within its walltime, and before a
// maintenance period begins.
func TestLeaving(t *testing.T) {
	const task, leave = 10 * time.Minute, 90 * time.Second
	for _, c := range []struct {
		name   string
		edit   func(*plan.Site)
		begins time.Duration // start of the task; negative: there is no plan
	}{
		{"without limits", func(*plan.Site) {}, 0},
		{"as much as the walltime has", func(s *plan.Site) { s.Walltime = task + leave }, 0},
		{"more than the walltime has", func(s *plan.Site) { s.Walltime = task + leave - 1 }, -1},
		{"until a maintenance", func(s *plan.Site) { s.Closed = []plan.Span{{From: task + leave, To: 12 * time.Hour}} }, 0},
		{"into a maintenance", func(s *plan.Site) { s.Closed = []plan.Span{{From: task + leave - 1, To: 12 * time.Hour}} },
			12 * time.Hour},
	} {
		s := cloud()
		s.Tariff = plan.CoreHours
		c.edit(&s)
		pl, err := Make(plan.Problem{Work: stages(t, task, 1), Sites: []plan.Site{s}, Cluster: plan.Cluster{Leave: leave}},
			plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if pl.Feasible != (c.begins >= 0) {
			t.Errorf("%s: feasible is %v", c.name, pl.Feasible)
			continue
		} else if !pl.Feasible {
			continue
		}
		if got, want := pl.Pilots[0].End, corral.Seconds(c.begins+task+leave); got != want {
			t.Errorf("%s: the pilot is held until %s, want %s", c.name, got, want)
		}
		if want := (task + leave).Hours(); pl.CoreHours != want {
			t.Errorf("%s: it costs %g core-hours, want %g", c.name, pl.CoreHours, want)
		}
	}
}
