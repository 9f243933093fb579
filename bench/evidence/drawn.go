package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner/montecarlo"
	"github.com/corral-pilot/corral/sim"
)

// layers draws a workflow of so many tasks in levels of random widths; each task waits for two of the level before.
func layers(rng *rand.Rand, tasks int) (plan.Work, error) {
	w := plan.Work{Name: "layers"}
	var edges [][2]int
	var before []int
	for len(w.Tasks) < tasks {
		var now []int
		for range 1 + rng.IntN(12) {
			i := len(w.Tasks)
			w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("t%d", i), Kind: fmt.Sprintf("k%d", rng.IntN(4)),
				Needs:   corral.Resources{CPUs: 1, MemoryMiB: 100},
				Runtime: time.Duration(10+rng.IntN(600)) * time.Second})
			for range min(2, len(before)) {
				edges = append(edges, [2]int{before[rng.IntN(len(before))], i})
			}
			now = append(now, i)
		}
		before = now
	}
	var err error
	w.Graph, err = dag.New(len(w.Tasks), edges)
	return w, err
}

// queue is a site whose pilots wait mostly minutes, and sometimes hours: lognormal with this median.
func queue(median time.Duration) plan.Site {
	s := plan.Site{Name: "queue", Hosts: 20, Pilots: 50, CPUs: 200, Walltime: 24 * time.Hour, Tariff: plan.CoreHours,
		Host:     corral.Resources{CPUs: 8, MemoryMiB: 64000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Overhead: 10 * time.Second, Margin: 70 * time.Second}
	s.Waits = func(_ plan.Shape, share float64) time.Duration {
		z := math.Sqrt2 * math.Erfinv(2*min(max(share, 1e-4), 1-1e-4)-1)
		return time.Duration(float64(median) * math.Exp(0.8*z)).Round(time.Millisecond)
	}
	s.Wait = func(shape plan.Shape) time.Duration { return s.Waits(shape, 0.5) }
	return s
}

// spreads are how runtimes may differ from their estimates.
var spreads = []sim.Spread{montecarlo.DefaultSpread, {Law: "transformation", Size: 0.2}, {Law: "uniform", Size: 0.3}}

// around is work at a queue, whose pilots join a cluster.
func around(rng *rand.Rand, w plan.Work) montecarlo.Model {
	return montecarlo.Model{Spread: spreads[rng.IntN(len(spreads))], Problem: plan.Problem{Work: w,
		Cluster: plan.Cluster{Hop: 2 * time.Millisecond, Rate: 1500},
		Sites:   []plan.Site{queue(time.Duration(1+rng.IntN(10)) * time.Minute)}}}
}
