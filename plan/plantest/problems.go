package plantest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Layers returns a workflow of at least the given number of tasks, in levels of random widths; each task depends on two
// of the previous level.
func Layers(rng *rand.Rand, tasks int) plan.Work {
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
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		panic("drawn: " + err.Error()) // unreachable: tasks depend on earlier ones only
	}
	return w
}

// Queue returns a site whose queue waits are lognormally distributed around the given median.
func Queue(name string, median time.Duration) plan.Site {
	s := plan.Site{
		Name: name, Host: corral.Resources{CPUs: 8, MemoryMiB: 64000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Hosts: 20, Pilots: 50, CPUs: 200, Walltime: 24 * time.Hour, Overhead: 10 * time.Second,
		Margin: 70 * time.Second, Tariff: plan.CoreHours,
	}
	s.Waits = func(_ plan.Shape, share float64) time.Duration {
		z := math.Sqrt2 * math.Erfinv(2*min(max(share, 1e-4), 1-1e-4)-1)
		return time.Duration(float64(median) * math.Exp(0.8*z)).Round(time.Millisecond)
	}
	s.Wait = func(shape plan.Shape) time.Duration { return s.Waits(shape, 0.5) }
	return s
}

// Problem returns a random problem: a workflow of 20 to 150 tasks, layered or of an application, whose files may have
// to travel, at one or two sites that differ in waits, walltimes, billing periods, limits and speed. Nothing in it is
// random: a wait is the same for all pilots of a site.
func Problem(seed uint64) (plan.Problem, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := Layers(rng, 20+rng.IntN(130))
	if seed%2 == 1 {
		var err error
		if w, err = Draw(Applications[int(seed/2)%len(Applications)], 30+rng.IntN(100), seed); err != nil {
			return plan.Problem{}, err
		}
	}
	for i := range w.Tasks {
		w.Tasks[i].Bytes = int64(rng.IntN(100_000_000))
	}
	p := plan.Problem{Work: w, Cluster: plan.Cluster{Hop: 20 * time.Millisecond, Leave: time.Second}}
	for i := range 1 + rng.IntN(2) {
		s := Queue([]string{"near", "far"}[i], 0)
		wait := time.Duration(rng.IntN(20)) * time.Minute
		s.Waits, s.Wait = nil, func(plan.Shape) time.Duration { return wait }
		s.Walltime = []time.Duration{45 * time.Minute, 2 * time.Hour, 24 * time.Hour}[rng.IntN(3)]
		s.Tariff.Billing = []cost.Billing{{}, {Period: time.Minute}, {Period: time.Hour}}[rng.IntN(3)]
		if rng.IntN(3) == 0 {
			s.Pilots, s.CPUs = 4, 32
		}
		if rng.IntN(3) == 0 {
			s.Speed, s.Transfer = 0.7, plan.Transfer{Latency: 300 * time.Millisecond, Bandwidth: 20e6}
		}
		p.Sites = append(p.Sites, s)
	}
	return p, nil
}
