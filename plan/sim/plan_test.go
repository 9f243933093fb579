package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
)

// If the assumptions of a plan hold, a run has the planned makespan and core-hours, although it does not follow the
// planned schedule, because production's rules assign the tasks.
func TestPlansComeAbout(t *testing.T) {
	t.Parallel()
	work := many(t, 300, 40)
	planned := plan.Work{Name: "levels", Graph: work.Graph}
	for _, x := range work.Tasks {
		planned.Tasks = append(planned.Tasks, plan.Task{
			ID: x.ID, Needs: corral.Resources{CPUs: x.CPUs, MemoryMiB: x.MemoryMiB}, Runtime: x.Estimate,
			Bytes: 300e6,
		})
	}
	hpc := site(100 * time.Second)
	hpc.Walltime, hpc.CPUs, hpc.Pilots = 6*time.Hour, 1000, 100
	hpc.Margin = 70 * time.Second // production's reserve: a minute to leave, and the time that a worker needs to stop
	hpc.Tariff = plan.CoreHours
	for _, cluster := range []plan.Cluster{{Hop: 100 * time.Millisecond},
		{Hop: 2200 * time.Millisecond, Reuse: 500 * time.Millisecond}} {
		plansComeAbout(t, work, planned, hpc, cluster)
		far := hpc
		far.Transfer = plan.Transfer{Latency: 500 * time.Millisecond, Bandwidth: 10e6}
		plansComeAbout(t, work, planned, far, cluster)
	}
}

func plansComeAbout(t *testing.T, work execution.Spec, planned plan.Work, hpc sim.Site, cluster plan.Cluster) {
	t.Helper()
	for _, deadline := range []time.Duration{0, 2 * time.Hour, time.Hour} {
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(deadline)}
		model := montecarlo.Model{Problem: plan.Problem{Work: planned, Sites: []plan.Site{hpc.Site}, Cluster: cluster}}
		p, err := model.Make(t.Context(), goal, planner.Options{})
		if err != nil || !p.Feasible {
			t.Fatalf("deadline %s: no plan: %v, %v", deadline, p, err)
		}
		s := sim.Scenario{Work: work, Sites: []sim.Site{hpc}, Cluster: sim.Cluster{Cluster: cluster},
			Bytes: func(task int) int64 { return planned.Tasks[task].Bytes }}
		s.Work.Clusters = planned.Jobs(p.Clustering)
		for _, q := range p.Pilots {
			s.Asks = append(s.Asks, sim.Ask{Pilot: q, Idle: time.Minute})
		}
		tr := sim.Run(s)
		makespan := float64(tr.Makespan()) / float64(p.Makespan)
		if hours := tr.CoreHours() / p.CoreHours; tr.Ending != sim.Done || math.Abs(makespan-1) > 0.01 ||
			math.Abs(hours-1) > 0.01 {
			t.Errorf("deadline %s: %s (%s) after %s with %.2f core-hours, planned are %s and %.2f",
				deadline, tr.Ending, tr.Why, tr.Makespan(), tr.CoreHours(), time.Duration(p.Makespan), p.CoreHours)
		}
	}
}
