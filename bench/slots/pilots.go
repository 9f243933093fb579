package main

import (
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// staircase is what the planner's pilots come to in a queue: as corral plan asks for them, by the waits that room in
// the queue promises now, and as they and their tasks run among those who come later. Hosts have any size, as long as
// all are alike.
func staircase(w plan.Work, q *queue.Queue, alpha ensemble.Share) (cost.Point, error) {
	free := queue.Unplanned(q)
	at := plan.Site{Name: "site", Hosts: plan.Unlimited, Pilots: plan.Unlimited, CPUs: free.Processors(),
		Host: corral.Resources{CPUs: free.Processors(), MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited,
			DiskMiB: plan.Unlimited},
		Walltime: plan.Unbounded, Margin: 2 * time.Minute, Tariff: plan.CoreHours}
	at.Wait = func(shape plan.Shape) time.Duration {
		start, ok := free.Fit(q.Now(), min(shape.Walltime, week), shape.Hosts*shape.Host.CPUs)
		if !ok {
			return plan.Unbounded
		}
		return start - q.Now()
	}
	problem := plan.Problem{Work: w, Sites: []plan.Site{at}}
	goal := plan.Goal{Objective: plan.Tradeoff, Tradeoff: float64(alpha) / float64(ensemble.Whole)}
	pl, err := planner.Make(problem, goal, planner.Options{Seed: 1, Clustering: &clustering.Rule{}})
	if err != nil {
		return cost.Point{}, err
	}
	s := montecarlo.Model{Problem: problem}.Scenario(pl, 1)
	s.Sites[0].Batch = q
	for i := range s.Asks { // what a late start has cut short goes on in another pilot
		s.Asks[i].Idle = 0
		s.Asks[i].Resubmit = resubmit.Policy{Mode: resubmit.Forever, Retries: 10}
	}
	t := sim.Run(s)
	if t.Ending != sim.Done {
		return cost.Point{}, fmt.Errorf("pilots of a plan: %s %s", t.Ending, t.Why)
	}
	return cost.Point{Makespan: t.Makespan(), Cost: cost.Money(math.Round(t.CoreHours() * float64(unit)))}, nil
}
