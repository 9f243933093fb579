package montecarlo

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/dag"
)

// If everything goes as planned, a workflow that is longer than a walltime takes as long as planned: a pilot starts at
// the planned handover, not only at the end of the previous walltime, shortly before which no task fits.
func TestAChainGoesAsPlanned(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{40 * time.Minute, 25 * time.Minute, 7 * time.Minute} {
		w := plan.Work{Name: "chain"}
		var edges [][2]int
		for i := range 12 {
			w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("t%d", i), Kind: "k",
				Needs: corral.Resources{CPUs: 1, MemoryMiB: 100}, Runtime: takes})
			if i > 0 {
				edges = append(edges, [2]int{i - 1, i})
			}
		}
		w.Graph, _ = dag.New(len(w.Tasks), edges)
		s := plantest.Queue("q", 10*time.Minute)
		s.Waits, s.Walltime = nil, 2*time.Hour
		s.Wait = func(plan.Shape) time.Duration { return 10 * time.Minute }
		problem := plan.Problem{Work: w, Sites: []plan.Site{s}}
		pl, err := planner.Make(problem, plan.Goal{Objective: plan.Makespan}, planner.Options{})
		if err != nil || !pl.Feasible {
			t.Fatal(err, pl)
		}
		m := Model{Problem: problem}
		tr := sim.Run(m.Scenario(pl, 1))
		if late := tr.Over - time.Duration(pl.Makespan); tr.Ending != sim.Done || late > time.Minute || late < -time.Minute {
			t.Errorf("tasks of %s: %s after %s, planned %s on %d pilots: %+v", takes, tr.Ending, tr.Over, pl.Makespan,
				len(pl.Pilots), tr.Pilots)
		}
	}
}
