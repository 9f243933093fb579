package sim_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A pilot of two cpus waits ten minutes in the queue and needs another minute until its worker is ready. Three tasks of
// an hour then run in two rounds.
func Example() {
	graph, err := dag.New(3, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	work := plan.Work{Name: "three", Graph: graph}
	for _, id := range []string{"a", "b", "c"} {
		work.Tasks = append(work.Tasks, plan.Task{ID: id, Needs: corral.Resources{CPUs: 1}, Runtime: time.Hour})
	}
	site := sim.Site{Site: plan.Site{Name: "hpc", Host: corral.Resources{CPUs: 8}, Hosts: 1, Pilots: 1, CPUs: 8,
		Walltime: plan.Unbounded, Overhead: time.Minute,
		Wait: func(plan.Shape) time.Duration { return 10 * time.Minute }}}
	pilot := plan.Pilot{Site: "hpc", Shape: corral.Shape{Hosts: 1, CPUs: 2, Walltime: corral.Seconds(3 * time.Hour)}}
	trace := sim.Run(sim.Scenario{
		Work: sim.WorkOf(work), Sites: []sim.Site{site}, Asks: sim.AsksFor([]plan.Pilot{pilot}, 0, time.Minute),
	})
	fmt.Println(trace.Ending, "after", trace.Makespan())
	for _, h := range trace.Pilots {
		fmt.Println("pilot started after", h.Start, "ready after", h.Ready, "held for", h.For())
	}
	fmt.Printf("%.2f core-hours held, %g used\n", trace.CoreHours(), trace.Work())
	// Output:
	// done after 2h11m0s
	// pilot started after 10m0s ready after 11m0s held for 2h1m0s
	// 4.03 core-hours held, 3 used
}
