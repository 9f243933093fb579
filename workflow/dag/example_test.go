package dag_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/workflow/dag"
)

func ExampleGraph_Levels() {
	g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Levels())
	// Output: [0 1 1 2]
}

func ExampleNew_cycle() {
	_, err := dag.New(3, [][2]int{{0, 1}, {1, 2}, {2, 0}})
	fmt.Println(err)
	// Output: cycle: 0 -> 1 -> 2 -> 0
}

// Three independent tasks of an hour precede a fourth. With three cpus only the critical path limits the schedule; with
// one cpu it takes the sum of the costs.
func ExampleListSchedule() {
	g, err := dag.New(4, [][2]int{{0, 3}, {1, 3}, {2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cost := []time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}
	for cpus := 1; cpus <= 3; cpus++ {
		makespan, _ := dag.ListSchedule(g, cost, nil, cpus)
		fmt.Printf("cpus %d: makespan %s, lower bound %s\n", cpus, makespan, dag.LowerBound(g, cost, nil, cpus))
	}
	// Output:
	// cpus 1: makespan 4h0m0s, lower bound 4h0m0s
	// cpus 2: makespan 3h0m0s, lower bound 2h0m0s
	// cpus 3: makespan 2h0m0s, lower bound 2h0m0s
}
