package main

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// embedded describes an embedded cluster: its delay to a worker, and its starts per second.
var embedded = plan.Cluster{Rate: 1500, Hop: 2 * time.Millisecond}

// simulate simulates a workflow on the given number of workers with one CPU, and returns the duration from the first
// task's start.
func simulate(a asleep, rule clustering.Rule, workers int) (time.Duration, error) {
	s := sim.Scenario{Work: a.spec(rule), Cluster: sim.Cluster{Cluster: embedded}, Sites: []sim.Site{{Site: plan.Site{
		Name: "local", Hosts: workers, Pilots: plan.Unlimited, CPUs: plan.Unlimited, Walltime: plan.Unbounded,
		Host: corral.Resources{CPUs: 1, MemoryMiB: 1024, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Wait: func(plan.Shape) time.Duration { return 0 },
	}}}, Asks: []sim.Ask{{Pilot: plan.Pilot{Site: "local",
		Shape: corral.Shape{Hosts: workers, CPUs: 1, MemoryMiB: 1024, Walltime: corral.Seconds(24 * time.Hour)}}}}}
	t := sim.Run(s)
	r := t.Report()
	if t.Ending != sim.Done || r == nil {
		return 0, fmt.Errorf("%s on %d workers, simulated: %s %s", a.wf.Name, workers, t.Ending, t.Why)
	}
	return time.Duration(r.Makespan - r.WaitForWorkers), nil
}

// chosen returns the rule that auto selects for the given number of workers.
func chosen(a asleep, workers int) clustering.Rule {
	rule, _ := clustering.Choose(a.wf.Graph, a.tasks(), clustering.Supply{CPUs: workers, Way: embedded.Turn(),
		Rate: embedded.Rate})
	return rule
}
