package cloud_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim/cloud"
	"github.com/corral-pilot/corral/workflow/dag"
)

// fixed is a policy that requests a number of machines at the beginning, keeps them until the deadline, and begins every
// workflow in order of priority.
type fixed struct {
	machines int
	deadline time.Duration
}

func (f fixed) Step(v ensemble.View) ensemble.Orders {
	orders := ensemble.Orders{Start: f.machines - v.Asked, Next: f.deadline}
	if v.Over || v.Now >= f.deadline {
		for _, m := range v.Machines {
			orders.Stop = append(orders.Stop, m.ID)
		}
		orders.Start, orders.Next = 0, v.Now+time.Hour
	}
	return orders
}

func (fixed) Admit(ensemble.View, ensemble.Claim) ensemble.Verdict {
	return ensemble.Verdict{Begin: true}
}
func (fixed) Place(workflow, _ int) int64 { return int64(workflow) }

// Three workflows of two independent tasks, each of 50 minutes, run on two machines. Two of them are completed within
// two hours.
func Example() {
	var workflows ensemble.Ensemble
	for _, name := range []string{"a", "b", "c"} {
		graph, err := dag.New(2, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		task := plan.Task{Needs: corral.Resources{CPUs: 1}, Runtime: 50 * time.Minute}
		workflows = append(workflows, plan.Work{Name: name, Graph: graph, Tasks: []plan.Task{task, task}})
	}
	s := cloud.Scenario{Ensemble: workflows, Deadline: 2 * time.Hour, Terms: ensemble.Hourly}
	got := cloud.Online(s, fixed{machines: 2, deadline: s.Deadline})
	fmt.Println("completed:", got.Completed)
	fmt.Println("makespan:", got.Makespan)
	fmt.Println("cost:", s.Terms.Amount(got.Cost))
	// Output:
	// completed: 110
	// makespan: 1h40m0s
	// cost: 4USD
}
