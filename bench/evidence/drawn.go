package main

import (
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
)

// spreads describe how runtimes may differ from their estimates.
var spreads = []sim.Spread{montecarlo.DefaultSpread, {Law: "transformation", Size: 0.2}, {Law: "uniform", Size: 0.3}}

// around returns a model of work at a queue, with pilots that join a cluster.
func around(rng *rand.Rand, w plan.Work) montecarlo.Model {
	return montecarlo.Model{Spread: spreads[rng.IntN(len(spreads))], Problem: plan.Problem{Work: w,
		Cluster: plan.Cluster{Hop: 2 * time.Millisecond, Rate: 1500},
		Sites:   []plan.Site{plantest.Queue("queue", time.Duration(1+rng.IntN(10))*time.Minute)}}}
}
