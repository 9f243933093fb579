package plan_test

import (
	"encoding/json"
	"fmt"

	"github.com/corral-pilot/corral/plan"
)

// A program reads a plan, as corral plan -o json prints it, and lists the pilots to request.
func ExamplePlan() {
	const document = `{
  "workflow": "mosaic", "feasible": true, "goal": {"objective": "cost", "deadline_s": 7200},
  "pilots": [
    {"site": "hpc", "hosts": 1, "cpus": 4, "walltime_s": 5400,
     "submit_s": 0, "start_s": 600, "ready_s": 630, "end_s": 4200},
    {"site": "hpc", "hosts": 2, "cpus": 16, "walltime_s": 3600,
     "submit_s": 1800, "start_s": 2400, "ready_s": 2430, "end_s": 4200}
  ],
  "makespan_s": 4200, "core_hours": 20, "cost": {"amount": 20, "unit": "ch"}, "peak_cpus": 36
}`
	var p plan.Plan
	if err := json.Unmarshal([]byte(document), &p); err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range p.Pilots {
		fmt.Printf("after %s request %d cpus at %s, expected after %s, until %s\n", q.Submit, q.HeldCPUs(), q.Site, q.Start,
			q.End)
	}
	fmt.Printf("%s takes %s and costs %s\n", p.Workflow, p.Makespan, p.Cost)
	// Output:
	// after 0s request 4 cpus at hpc, expected after 10m0s, until 1h10m0s
	// after 30m0s request 32 cpus at hpc, expected after 40m0s, until 1h10m0s
	// mosaic takes 1h10m0s and costs 20ch
}
