package revision_test

// These tests run plans that were made for the current queue in that queue as it evolves. A plan in slots makes more
// assumptions than others: that the room is still free, and that tasks end before their slot does. Therefore revisions
// are needed most here: pilots that started too early have left, late pilots are behind, and tasks that were cut off
// start over.
//
// The plans are made by package algorithm, which depends on this package; the revisions use only waits.

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// TestSlotsWithNoise runs a plan in slots in a queue where jobs continue to arrive and end before their requested
// times, with runtimes that differ by up to 30 %: pilots start at other times than planned, and slots end while tasks
// run (F34). The plan is revised, all tasks complete, no task runs twice, and on average the makespan is at most 50 %
// above the plan and the cost at most 25 % above it. The log shows the number of revisions.
func TestSlotsWithNoise(t *testing.T) {
	t.Parallel()
	const n, processors = 8, 64
	var longer, dearer float64
	revised := 0
	for k := range uint64(n) {
		jobs := workload.Draw(600, processors, 0.75, k)
		for i := range jobs {
			jobs[i].Requested = jobs[i].Runtime * time.Duration(1+i%3)
		}
		q := queue.States(queue.Machine{Processors: processors, Policy: queue.Conservative}, jobs,
			[]time.Duration{time.Duration(50+k) * time.Hour})[0]
		at := hpc(time.Hour)
		at.Host.CPUs, at.CPUs, at.Hosts, at.Batch = processors, processors, 1, q
		at.Room = queue.Unplanned(q).From(q.Now())
		grid := plantest.Grid{Tasks: 40, Levels: 5, Runtime: time.Hour, Processors: 4, Parents: 2}
		problem := plan.Problem{Work: plantest.Levels(grid, k), Sites: []plan.Site{at.Site},
			Cluster: plan.Cluster{Hop: 2 * time.Millisecond}}
		asking := algorithm.Question{Model: montecarlo.Model{Problem: problem},
			Goal:    plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2},
			Options: planner.Options{Clustering: &clustering.Rule{}}}
		made, err := asking.Make(t.Context(), plan.MOGA)
		if err != nil || !made.Feasible {
			t.Fatalf("%d: %+v, %v", k, made, err)
		}
		// The control is corrald's reviser, which examines the plan every minute.
		c := &control{tb: t, every: time.Minute, plan: made, problem: problem}
		c.problem.Sites[0].Room = nil // revisions use waits
		for _, q := range made.Pilots {
			c.pilots = append(c.pilots, asked{Pilot: q})
		}
		s := sim.Scenario{Work: sim.WorkOf(problem.Work), Sites: []sim.Site{at}, Control: c.steer, Every: c.every,
			Cluster: sim.Cluster{Cluster: problem.Cluster}, Asks: sim.AsksFor(made.Pilots, 0, time.Duration(plan.LeaveAfter))}
		// Each task takes up to 30 % more or less than its estimate, on any pilot.
		sim.Spread{Law: "uniform", Size: 0.3}.Of(&s, func(i int) string { return "t" }, k)
		came := sim.Run(s)
		if tasks := came.Tasks(); came.Ending != sim.Done || tasks.Done != grid.Tasks {
			t.Errorf("%d: it is %s: %s, with %+v", k, came.Ending, came.Why, tasks)
		}
		t.Logf("%d: %d revisions; %s, planned %s; %.0f core-hours, planned %.0f", k, len(c.said),
			came.Makespan().Round(time.Minute), time.Duration(made.Makespan).Round(time.Minute), came.CoreHours(), made.CoreHours)
		revised += len(c.said)
		longer += float64(came.Makespan()) / float64(made.Makespan) / n
		dearer += came.CoreHours() / made.CoreHours / n
	}
	if revised == 0 || longer > 1.5 || dearer > 1.25 {
		t.Errorf("%d revisions; %.2f times as long as planned, %.2f times as many core-hours", revised, longer, dearer)
	}
}
