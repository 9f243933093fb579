package planner_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/workflow/dag"
)

// One task precedes three, and each takes an hour. Pilots wait ten minutes at the site. The first pilot also runs one of
// the three tasks; the pilot for the other two is submitted ten minutes before the first task ends.
func ExampleMake() {
	graph, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {0, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := plan.Work{Name: "fan", Graph: graph}
	for i := range 4 {
		work.Tasks = append(work.Tasks, plan.Task{ID: fmt.Sprint(i), Needs: corral.Resources{CPUs: 1}, Runtime: time.Hour})
	}
	site := plan.Site{Name: "hpc", Host: corral.Resources{CPUs: 1}, Hosts: 10, Pilots: 10, CPUs: 10,
		Walltime: 12 * time.Hour, Tariff: plan.CoreHours, Wait: func(plan.Shape) time.Duration { return 10 * time.Minute }}
	p, err := planner.Make(plan.Problem{Work: work, Sites: []plan.Site{site}}, plan.Goal{Objective: plan.Makespan},
		planner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range p.Pilots {
		fmt.Printf("submit at %s: %d cpus from %s to %s\n", q.Submit, q.HeldCPUs(), q.Start, q.End)
	}
	fmt.Println("makespan", p.Makespan, "cost", p.Cost, "waste", p.Waste)
	// Output:
	// submit at 0s: 1 cpus from 10m0s to 2h10m0s
	// submit at 1h0m0s: 2 cpus from 1h10m0s to 2h10m0s
	// makespan 2h10m0s cost 4ch waste 0
}
