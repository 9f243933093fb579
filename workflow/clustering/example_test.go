package clustering_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Four short tasks run between a first one and a last one. On two cpus, two jobs of two tasks each have less overhead
// than four jobs.
func Example() {
	g, err := dag.New(6, [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 5}, {2, 5}, {3, 5}, {4, 5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tasks := make([]clustering.Unit, 6)
	for i := range tasks {
		tasks[i] = clustering.Unit{Needs: corral.Resources{CPUs: 1}, Estimate: time.Second}
	}
	rule, why := clustering.Choose(g, tasks, clustering.Supply{CPUs: 2, Way: 2 * time.Second})
	fmt.Println(rule)
	fmt.Println(why)
	fmt.Println(clustering.Jobs(g, tasks, rule))
	// Output:
	// horizontal=2
	// the overhead of a job is 2s: 10s on 2 cpus instead of 12s
	// [[0] [1 2] [3 4] [5]]
}
