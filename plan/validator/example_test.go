package validator_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

// Two tasks of an hour run side by side on a pilot with two cpus. After an edit the second one starts half an hour
// later, while the pilot is still released after an hour.
func ExampleAll() {
	const hour = corral.Seconds(time.Hour)
	p := &plan.Plan{
		Feasible: true,
		Pilots:   []plan.Pilot{{Site: "hpc", Shape: corral.Shape{Hosts: 1, CPUs: 2, Walltime: 2 * hour}, End: hour}},
		Point:    plan.Point{Makespan: hour, CoreHours: 2, PeakCPUs: 2, Cost: cost.Amount{Money: 2_000_000, Unit: "ch"}},
		Billed:   2,
		Schedule: []plan.Placement{{ID: "a", End: hour}, {ID: "b", End: hour}},
	}
	problem := plan.Problem{
		Work: plan.Scheduled("two", p.Schedule),
		Sites: []plan.Site{{Name: "hpc", Host: corral.Resources{CPUs: 4}, Hosts: 1, Pilots: 1, CPUs: 4,
			Walltime: plan.Unbounded, Tariff: plan.CoreHours, Wait: func(plan.Shape) time.Duration { return 0 }}},
	}
	p.Number(problem.Work)
	fmt.Println(validator.Check(problem, p))

	p.Schedule[1].Start, p.Schedule[1].End = hour/2, hour/2+hour
	for _, breach := range validator.All(problem, p) {
		fmt.Println(breach)
	}
	// Output:
	// <nil>
	// the plan breaks the rule "released": task b ends after the release of pilot 0
	// the plan breaks the rule "makespan": the plan states 1h0m0s, but its schedule ends at 1h30m0s
}
