package validator_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/clustering"
)

const hour = corral.Seconds(time.Hour)

// two returns a plan of one pilot with two cpus, each of which runs a task for an hour, and the plan's problem.
func two() (plan.Problem, *plan.Plan) {
	p := &plan.Plan{
		Feasible: true,
		Pilots:   []plan.Pilot{{Site: "local", Shape: corral.Shape{Hosts: 1, CPUs: 2, Walltime: 2 * hour}, End: hour}},
		Point:    plan.Point{Makespan: hour, CoreHours: 2, PeakCPUs: 2, Cost: cost.Amount{Money: 2e6, Unit: "ch"}},
		Billed:   2,
		Schedule: []plan.Placement{{ID: "a", End: hour}, {ID: "b", End: hour}},
	}
	site := plan.Site{Name: "local", Host: corral.Resources{CPUs: 4}, Hosts: 1, Pilots: 1, CPUs: 4,
		Walltime: plan.Unbounded, Tariff: plan.CoreHours, Wait: func(plan.Shape) time.Duration { return 0 }}
	work := plan.Scheduled("two", p.Schedule)
	p.Number(work)
	return plan.Problem{Work: work, Sites: []plan.Site{site}}, p
}

// TestAll: each violated rule is reported once, with its first place and the number of further places.
func TestAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*plan.Plan)
		want []validator.Breach
	}{
		{"valid", func(*plan.Plan) {}, nil},
		{"one rule twice", func(p *plan.Plan) { p.Schedule[0].Host, p.Schedule[1].Host = 3, 4 }, []validator.Breach{
			{Rule: "pilot host", Where: "task a is on host 3 of pilot 0, which has 1", More: 1},
		}},
		{"several rules", func(p *plan.Plan) { p.PeakCPUs, p.Goal.Deadline, p.Pilots[0].Walltime = 1, hour/2, hour/2 },
			[]validator.Breach{
				{Rule: "walltime", Where: "pilot 0 is held for 1h0m0s, but its walltime is 30m0s"},
				{Rule: "peak", Where: "the plan states 1 cpus, but its pilots hold 2"},
				{Rule: "deadline", Where: "the plan ends after 1h0m0s, but the deadline is 30m0s"},
			}},
		{"an unknown site hides what depends on it", func(p *plan.Plan) { p.Pilots[0].Site = "hpc" }, []validator.Breach{
			{Rule: "site", Where: `pilot 0 is for site hpc, queue "", which does not exist`},
		}},
	} {
		problem, p := two()
		c.edit(p)
		var got []validator.Breach
		for _, b := range validator.All(problem, p) {
			got = append(got, *b)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestWitnessOfAnotherPlan: a separately stored schedule must have the plan's digest.
func TestWitnessOfAnotherPlan(t *testing.T) {
	t.Parallel()
	problem, p := two()
	apart, err := plan.WriteSchedule(&bytes.Buffer{}, p.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	p.Apart = &apart
	if err := validator.Check(problem, p); err != nil {
		t.Error(err)
	}
	p.Schedule[0], p.Schedule[1] = p.Schedule[1], p.Schedule[0] // equally valid, but not the plan's schedule
	if all := validator.All(problem, p); len(all) != 1 || all[0].Rule != "schedule digest" {
		t.Errorf("%v, want the schedule's digest", all)
	}
}

// TestLatencyOfEachJob: a task has no transfer latency only if it follows another task of its job.
func TestLatencyOfEachJob(t *testing.T) {
	t.Parallel()
	const late = corral.Seconds(5 * time.Second)
	for groups, want := range map[int]bool{1: false, 2: true} {
		problem, p := two()
		problem.Sites[0].Transfer.Latency = time.Duration(late)
		p.Clustering = clustering.Levels(groups)
		p.Schedule[0].End, p.Schedule[0].Transfer = hour+late, late
		p.Schedule[1].Start, p.Schedule[1].End = hour+late, 2*hour+late
		broken := false
		for _, b := range validator.All(problem, p) {
			broken = broken || b.Rule == "transfer"
		}
		if broken != want {
			t.Errorf("two tasks in %d job(s), one latency: broken %v, want %v", groups, broken, want)
		}
	}
}
