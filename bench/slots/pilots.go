package main

import (
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// staircase returns the makespan and cost of the planner's pilots in a queue. The planner asks for them like corral
// plan, with the waits that the free room in the queue currently promises; they and their tasks then run among the jobs
// that arrive later. Hosts can have any size if all are alike.
func staircase(w plan.Work, q *queue.Queue, alpha plan.Share) (cost.Point, error) {
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
	goal := plan.Goal{Objective: plan.Tradeoff, Tradeoff: alpha}
	pl, err := planner.Make(problem, goal, planner.Options{Seed: 1, Clustering: &clustering.Rule{}})
	if err != nil {
		return cost.Point{}, err
	}
	s := montecarlo.Model{Problem: problem}.Scenario(pl, 1)
	s.Sites[0].Batch = q
	for i := range s.Asks { // another pilot continues the work that a late start has cut short
		s.Asks[i].Idle = 0
		s.Asks[i].Resubmit = resubmit.Policy{Mode: resubmit.Forever, Retries: 10}
	}
	t := sim.Run(s)
	if t.Ending != sim.Done {
		return cost.Point{}, fmt.Errorf("pilots of a plan: %s %s", t.Ending, t.Why)
	}
	return cost.Point{Makespan: t.Makespan(), Cost: cost.Money(math.Round(t.CoreHours() * float64(unit)))}, nil
}
