package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/dag"
)

// randomProblem returns a workflow of at most the given number of tasks and one to three sites with different limits,
// waits, overheads, walltimes and maintenance periods.
func randomProblem(t testing.TB, rng *rand.Rand, tasks int) plan.Problem {
	t.Helper()
	p := plan.Problem{Work: randomWork(t, rng, tasks)}
	for k := range 1 + rng.IntN(3) {
		p.Sites = append(p.Sites, randomSite(rng, fmt.Sprintf("site%d", k)))
	}
	if rng.IntN(3) == 0 {
		p.Cluster = plan.Cluster{Rate: float64(1 + rng.IntN(50)), Hop: time.Duration(rng.IntN(2000)) * time.Millisecond,
			Reuse: time.Duration(rng.IntN(1000)) * time.Millisecond,
			Leave: time.Duration(rng.IntN(30_000)) * time.Millisecond}
	}
	return p
}

func randomWork(t testing.TB, rng *rand.Rand, tasks int) plan.Work {
	t.Helper()
	w := plan.Work{Name: "random"}
	n := 1 + rng.IntN(tasks)
	var edges [][2]int
	for i := range n {
		w.Tasks = append(w.Tasks, plan.Task{
			ID: fmt.Sprintf("t%d", i),
			Needs: corral.Resources{CPUs: 1 + rng.IntN(3), MemoryMiB: 100 * rng.IntN(4), GPUs: rng.IntN(8) / 7,
				DiskMiB: rng.IntN(50)},
			Runtime: time.Duration(rng.IntN(3_600_000)) * time.Millisecond,
			Bytes:   int64(rng.IntN(2_000_000_000) / (1 + 99*rng.IntN(2))),
		})
		for range min(i, rng.IntN(3)) {
			edges = append(edges, [2]int{rng.IntN(i), i})
		}
	}
	var err error
	if w.Graph, err = dag.New(n, edges); err != nil {
		t.Fatal(err)
	}
	return w
}

func randomSite(rng *rand.Rand, name string) plan.Site {
	s := cloud()
	s.Name, s.Host = name, corral.Resources{CPUs: 3 + rng.IntN(14), MemoryMiB: 1000 + rng.IntN(3000), GPUs: 1,
		DiskMiB: 1000}
	s.Hosts, s.Pilots, s.CPUs = 1+rng.IntN(4), 4+rng.IntN(40), 3+rng.IntN(60)
	s.Walltime = time.Duration(2+rng.IntN(24)) * time.Hour
	s.Overhead, s.Margin = time.Duration(rng.IntN(120))*time.Second, time.Duration(rng.IntN(60))*time.Second
	s.Tariff = plan.Tariff{Rate: cost.Rate{Price: cost.Money(rng.IntN(3_000_000)), Unit: cost.CPUHours,
		Per: cost.CPUHour}}
	if wait := time.Duration(rng.IntN(3600)) * time.Second; rng.IntN(2) == 0 {
		s.Wait = func(shape plan.Shape) time.Duration { return wait * time.Duration(1+shape.Hosts) / 2 }
	}
	if rng.IntN(3) == 0 {
		from := time.Duration(rng.IntN(7200)) * time.Second
		s.Closed = []plan.Span{{From: from, To: from + time.Hour}}
	}
	if rng.IntN(3) == 0 {
		s.Speed = corral.Speed(0.2 + 0.8*rng.Float64())
	}
	if rng.IntN(3) == 0 {
		s.Transfer = plan.Transfer{Latency: time.Duration(rng.IntN(20_000)) * time.Millisecond,
			Bandwidth: 1e6 * rng.Float64()}
	}
	return s
}

// quick lists the objectives that need no search for the fewest cpus.
var quick = []plan.Objective{plan.Makespan, plan.Cost, plan.Tradeoff}

// feasible generates random problems until one has a plan.
func feasible(t testing.TB, rng *rand.Rand, tasks int) (plan.Problem, *plan.Plan) {
	t.Helper()
	for {
		problem := randomProblem(t, rng, tasks)
		pl, err := Make(problem, plan.Goal{Objective: quick[rng.IntN(len(quick))],
			Tradeoff: plan.Share(rng.IntN(1_000_001))}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if pl.Feasible {
			return problem, pl
		}
	}
}
