package montecarlo_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/dag"
)

// The pilots of widening.
const (
	narrow = iota // 1 cpu
	wide          // 4 cpus
)

// widening returns a task of one cpu with a child of four cpus, which take first and second, and a plan with a pilot
// for each. Both pilots wait for 5 minutes, take a minute to start, and are planned from the beginning until all work
// is done.
func widening(t *testing.T, first, second time.Duration) (montecarlo.Model, *plan.Plan) {
	t.Helper()
	w := plan.Work{Name: "widening", Tasks: []plan.Task{
		{ID: "first", Runtime: first, Needs: corral.Resources{CPUs: 1}},
		{ID: "second", Runtime: second, Needs: corral.Resources{CPUs: 4}},
	}}
	var err error
	if w.Graph, err = dag.New(2, [][2]int{{0, 1}}); err != nil {
		t.Fatal(err)
	}
	s := plan.Site{Name: "site", Hosts: 1, Pilots: 10, CPUs: 100, Walltime: 24 * time.Hour, Overhead: time.Minute,
		Margin: 10 * time.Minute, Tariff: plan.CoreHours,
		Host: corral.Resources{CPUs: 4, MemoryMiB: plan.Unlimited, DiskMiB: plan.Unlimited},
		Wait: func(plan.Shape) time.Duration { return 5 * time.Minute }}
	made := &plan.Plan{Feasible: true, Goal: plan.Goal{Objective: plan.Cost}}
	for _, cpus := range []int{1, 4} {
		made.Pilots = append(made.Pilots, plan.Pilot{Site: "site", Start: corral.Seconds(5 * time.Minute),
			Ready: corral.Seconds(6 * time.Minute), MinStay: corral.Seconds(first + second),
			Shape: corral.Shape{Hosts: 1, CPUs: cpus, Walltime: corral.Seconds(time.Duration(2+cpus) * time.Hour)}})
	}
	return montecarlo.Model{Problem: plan.Problem{Work: w, Sites: []plan.Site{s}}}, made
}

// An executed plan pays for no pilot that waits for nothing: a pilot leaves a minute after its last task, and is
// requested such that it is ready when its first task is. Where that costs as much or more, the plan stays the same.
func TestPilotsAreNotPaidForWaiting(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for name, c := range map[string]struct {
		first, second time.Duration
		change        func(m *montecarlo.Model, made *plan.Plan)
		left          time.Duration // end of the narrow pilot
		start         time.Duration // of the wide pilot
	}{
		"both":        {60 * m, 30 * m, nil, 67 * m, 65 * m},
		"too short":   {m / 2, 30 * m, nil, 7*m + m/2, 5 * m},
		"paid by day": {60 * m, 30 * m, billDays, 95 * m, 5 * m},
		"early":       {60 * m, 30 * m, submitEarly, 67 * m, 5 * m},
		"static":      {60 * m, 30 * m, static, 95 * m, 5 * m},
		"room":        {60 * m, 30 * m, makeRoom, 67 * m, 5 * m},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, made := widening(t, c.first, c.second)
			if c.change != nil {
				c.change(&model, made)
			}
			played, ok := model.Play(made)
			if !ok || len(played.Pilots) != 2 {
				t.Fatalf("%+v", played)
			}
			left, start := time.Duration(played.Pilots[narrow].End), time.Duration(played.Pilots[wide].Start)
			if diff := left - c.left; diff.Abs() > time.Second {
				t.Errorf("the first pilot leaves at %s, want %s", left, c.left)
			}
			if diff := start - c.start; diff.Abs() > time.Second {
				t.Errorf("the second pilot starts at %s, want %s", start, c.start)
			}
			if end := time.Duration(played.Makespan) - c.first - c.second - 6*m; end.Abs() > time.Second {
				t.Errorf("it takes %s longer than with both pilots from the beginning", end)
			}
			if err := validator.Check(model.Problem, played); err != nil && !made.Goal.Static {
				t.Error(err)
			}
		})
	}
}

func billDays(m *montecarlo.Model, _ *plan.Plan) { m.Sites[0].Tariff.Billing.Period = 24 * time.Hour }

func submitEarly(_ *montecarlo.Model, p *plan.Plan) { p.Pilots[wide].Early = true }

func static(_ *montecarlo.Model, p *plan.Plan) { p.Goal.Static = true }

func makeRoom(m *montecarlo.Model, _ *plan.Plan) { m.Sites[0].Room = slot.NewProfile(100, 0) }
