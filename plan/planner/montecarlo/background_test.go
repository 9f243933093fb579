package montecarlo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
	"github.com/corral-pilot/corral/workflow/dag"
)

// chain returns a chain of tasks.
func chain(t *testing.T, tasks int, takes time.Duration) plan.Work {
	t.Helper()
	w := plan.Work{Name: "chain"}
	var edges [][2]int
	for i := range tasks {
		w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprint("t", i), Kind: "k", Needs: corral.Resources{CPUs: 1, MemoryMiB: 100},
			Runtime: takes})
		if i > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	var err error
	if w.Graph, err = dag.New(tasks, edges); err != nil {
		t.Fatal(err)
	}
	return w
}

// Among other users' jobs, pilots wait longer if the load is higher, and if they request more cpus; two pilots with
// half the cpus each have different waits than a single one; and the same seed yields the same outcomes.
func TestWaitsFollowFromLoadAndFromWhatIsAsked(t *testing.T) {
	t.Parallel()
	const outcomes = 60
	site := plantest.Queue("hpc", time.Minute)
	site.Host.CPUs, site.Hosts, site.CPUs, site.Walltime = 64, 1, plan.Unlimited, 24*time.Hour
	wait := func(load float64, pilots, cpus int) time.Duration {
		m := montecarlo.Model{Problem: plan.Problem{Work: chain(t, 4, 30*time.Minute), Sites: []plan.Site{site}}}
		m.Among = montecarlo.NewBackground(queue.Machine{Processors: 64, Policy: queue.EASY}, workload.Draw(3000, 64, load, 5))
		pl := &plan.Plan{}
		for range pilots {
			pl.Pilots = append(pl.Pilots, plan.Pilot{Site: "hpc",
				Shape: corral.Shape{Hosts: 1, CPUs: cpus, MemoryMiB: 1000, Walltime: corral.Seconds(4 * time.Hour)}})
		}
		all := m.Outcomes(pl, outcomes, 1)
		if diff := cmp.Diff(all, m.Outcomes(pl, outcomes, 1)); diff != "" {
			t.Errorf("the same seed plays other outcomes:\n%s", diff)
		}
		var sum time.Duration
		for _, o := range all {
			sum += o.Wait
		}
		return sum / outcomes
	}
	quiet, busy, wide, two := wait(0.3, 1, 16), wait(0.9, 1, 16), wait(0.9, 1, 48), wait(0.9, 2, 24)
	t.Logf("mean waits: %s at a load of 0.3; at 0.9 %s, of 48 cpus %s, of twice 24 cpus %s", quiet, busy, wide, two)
	if quiet >= busy || busy >= wide || two >= wide {
		t.Errorf("mean waits: %s at a load of 0.3; at 0.9 %s, of 48 cpus %s, of twice 24 cpus %s", quiet, busy, wide, two)
	}
}

// Pilots that exceed the machine never start: the outcome is not finished.
func TestTooLargePilots(t *testing.T) {
	t.Parallel()
	site := plantest.Queue("hpc", time.Minute)
	m := montecarlo.Model{Problem: plan.Problem{Work: chain(t, 1, time.Minute), Sites: []plan.Site{site}},
		Among: montecarlo.NewBackground(queue.Machine{Processors: 1, Policy: queue.FCFS}, nil)}
	pl := &plan.Plan{Pilots: []plan.Pilot{{Site: "hpc",
		Shape: corral.Shape{Hosts: 2, CPUs: 1, MemoryMiB: 100, Walltime: corral.Seconds(time.Hour)}}}}
	if all := m.Outcomes(pl, 3, 1); all[0].Finished || all[2].Started != 0 {
		t.Errorf("2 cpus of 1: %+v", all)
	}
}
