package montecarlo_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A plan whose pilots leave before the work is done is completed by further pilots: their walltime is within the limit
// of their site, and a second shape is used if the remaining tasks do not fit the first shape.
func TestEndedAsksForWhatIsMissing(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	site := func(name string, walltime time.Duration, cpus, gpus int) plan.Site {
		return plan.Site{Name: name, Hosts: 1, Pilots: 10, CPUs: 100, Walltime: walltime, Tariff: plan.CoreHours,
			Host: corral.Resources{CPUs: cpus, GPUs: gpus, MemoryMiB: plan.Unlimited, DiskMiB: plan.Unlimited},
			Wait: func(plan.Shape) time.Duration { return 0 }}
	}
	pilot := func(name string, cpus, gpus int, walltime time.Duration) plan.Pilot {
		return plan.Pilot{Site: name,
			Shape: corral.Shape{Hosts: 1, CPUs: cpus, GPUs: gpus, Walltime: corral.Seconds(walltime)}}
	}
	chain := plan.Work{Name: "chain"}
	for range 5 {
		chain.Tasks = append(chain.Tasks, plan.Task{ID: "t", Runtime: h, Needs: corral.Resources{CPUs: 1}})
	}
	chain.Tasks[4].Needs.GPUs = 1
	var err error
	if chain.Graph, err = dag.New(5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}}); err != nil {
		t.Fatal(err)
	}
	m := montecarlo.Model{Problem: plan.Problem{Work: chain, Sites: []plan.Site{site("short", 2*h+h/2, 8, 0),
		site("long", 20*h, 4, 1)}}}
	made := &plan.Plan{Feasible: true, Pilots: []plan.Pilot{pilot("short", 8, 0, 2*h), pilot("long", 1, 1, 90*time.Minute)}}
	if o := m.Ended(t.Context(), made, 1, 1)[0]; !o.Finished || o.Requests < 3 {
		t.Errorf("it came to %+v, want it finished by other pilots", o)
	}
	never := &plan.Plan{Feasible: true, Pilots: []plan.Pilot{pilot("short", 8, 0, time.Minute)}}
	m.Sites[0].Walltime = 30 * time.Minute
	if o := m.Ended(t.Context(), never, 1, 1)[0]; o.Finished { // and the simulation ends
		t.Errorf("pilots of half an hour do tasks of an hour: %+v", o)
	}
	if o := m.Outcomes(made, 1, 1)[0]; o.Finished {
		t.Errorf("by its own pilots it came to %+v", o)
	}
}
