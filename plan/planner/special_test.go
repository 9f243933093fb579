package planner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/dag"
)

// cluster returns a site with nodes and without waits.
func cluster(name string, types ...corral.NodeType) plan.Site {
	s := plan.Site{Name: name, Hosts: plan.Unlimited, Pilots: plan.Unlimited, Walltime: 24 * time.Hour,
		Overhead: 10 * time.Second, Margin: time.Minute, Tariff: plan.CoreHours, Nodes: types,
		Wait: func(plan.Shape) time.Duration { return 0 }}
	for i := range types {
		types[i].DiskMiB = plan.Unlimited
		s.Host, s.CPUs = s.Host.Most(types[i].Resources), s.CPUs+types[i].Count*types[i].CPUs
	}
	return s
}

func ofNodes(count, cpus, memoryMiB, gpus int) corral.NodeType {
	return corral.NodeType{Count: count, Resources: corral.Resources{CPUs: cpus, MemoryMiB: memoryMiB, GPUs: gpus}}
}

// bag returns independent tasks of some minutes, whose needs of is given for.
func bag(n int, of func(i int) corral.Resources) plan.Work {
	w := plan.Work{Name: "bag", Tasks: make([]plan.Task, n)}
	for i := range w.Tasks {
		w.Tasks[i] = plan.Task{ID: fmt.Sprintf("t%d", i), Needs: of(i), Runtime: time.Duration(5+i%7) * time.Minute}
	}
	var err error
	if w.Graph, err = dag.New(n, nil); err != nil {
		panic(err)
	}
	return w
}

// oneOf returns the needs of ordinary tasks of one cpu, and of a special first one.
func oneOf(first corral.Resources) func(i int) corral.Resources {
	return func(i int) corral.Resources {
		if i == 0 {
			return first
		}
		return corral.Resources{CPUs: 1, MemoryMiB: 1000}
	}
}

// A special task has a host of its own, and all others are placed as if it were not there.
func TestSpecialTasksHaveHostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	big, gpu := cluster("big", ofNodes(64, 16, 64_000, 0)), cluster("gpu", ofNodes(4, 16, 64_000, 4))
	mem := cluster("mem", ofNodes(2, 32, 512_000, 0))
	for name, tt := range map[string]struct {
		sites    []plan.Site
		first    corral.Resources
		within   time.Duration
		memory   int // at most, of all hosts together
		ordinary string
	}{
		"one GPU": {[]plan.Site{big, gpu}, corral.Resources{CPUs: 1, MemoryMiB: 1000, GPUs: 1}, 20 * time.Minute,
			64 * 64_000, "big"},
		"much memory": {[]plan.Site{mem}, corral.Resources{CPUs: 1, MemoryMiB: 200_000}, 2 * time.Hour, 2 * 512_000,
			"mem"},
	} {
		problem := plan.Problem{Work: bag(501, oneOf(tt.first)), Sites: tt.sites}
		pl, err := planner.Make(problem, plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(tt.within)},
			planner.Options{})
		if err != nil || !pl.Feasible {
			t.Errorf("%s: %v, %q", name, err, pl.Reasons)
			continue
		}
		special, memory := 0, 0
		for _, q := range pl.Pilots {
			memory += q.Hosts * q.MemoryMiB
			if tt.first.FitIn(q.Host()) {
				special += q.Hosts
			} else if q.Site != tt.ordinary {
				t.Errorf("%s: ordinary hosts are at %s, want %s", name, q.Site, tt.ordinary)
			}
		}
		if special != 1 || memory > tt.memory {
			t.Errorf("%s: %d special hosts and %d MiB in %d pilots, want one and at most %d MiB", name, special, memory,
				len(pl.Pilots), tt.memory)
		}
	}
}

// Hosts that are held at once fit on the nodes in every component.
func TestHostsFitOnNodes(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: bag(200, func(int) corral.Resources {
		return corral.Resources{CPUs: 1, MemoryMiB: 40_000}
	}), Sites: []plan.Site{cluster("big", ofNodes(64, 16, 64_000, 0))}}
	pl, err := planner.Make(problem, plan.Goal{Objective: plan.Makespan}, planner.Options{})
	if err != nil || !pl.Feasible {
		t.Fatal(err, pl.Reasons)
	}
	hosts := 0
	for _, q := range pl.Pilots {
		if q.Start <= pl.Pilots[0].Start {
			hosts += q.Hosts
		}
	}
	if hosts != 64 {
		t.Errorf("%d hosts at once, want 64", hosts)
	}
}

// A task that fits no node is refused, though one node has the memory and another one the cpus.
func TestNoNodeHasBoth(t *testing.T) {
	t.Parallel()
	site := cluster("mixed", ofNodes(4, 64, 64_000, 0), ofNodes(1, 8, 512_000, 0))
	problem := plan.Problem{Work: bag(3, func(int) corral.Resources {
		return corral.Resources{CPUs: 16, MemoryMiB: 100_000}
	}), Sites: []plan.Site{site}}
	pl, err := planner.Make(problem, plan.Goal{Objective: plan.Makespan}, planner.Options{})
	if err != nil || pl.Feasible || len(pl.Reasons) == 0 {
		t.Errorf("Make() = %+v, %v; want a refusal", pl, err)
	}
}

// Plans for tasks with all kinds of needs, at sites with all kinds of nodes, pass the validator.
func TestMixedPlansAreValid(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(38, 1))
	made := 0
	for range 40 {
		var sites []plan.Site
		for i := range 1 + rng.IntN(3) {
			var types []corral.NodeType
			for range 1 + rng.IntN(2) {
				types = append(types, ofNodes(1+rng.IntN(8), 1+rng.IntN(16), 2000*(1+rng.IntN(64)), rng.IntN(2)*rng.IntN(5)))
			}
			sites = append(sites, cluster(fmt.Sprintf("s%d", i), types...))
		}
		kinds := make([]corral.Resources, 1+rng.IntN(4))
		for i := range kinds {
			kinds[i] = corral.Resources{CPUs: 1 + rng.IntN(3), MemoryMiB: 100 << rng.IntN(9), GPUs: rng.IntN(4) / 3}
		}
		work := bag(20+rng.IntN(100), func(int) corral.Resources { return kinds[rng.IntN(len(kinds))] })
		goal := plan.Goal{Objective: []plan.Objective{plan.Makespan, plan.Cost}[rng.IntN(2)]}
		problem := plan.Problem{Work: work, Sites: sites}
		pl, err := planner.Make(problem, goal, planner.Options{})
		if err != nil {
			t.Errorf("%v at %v: %v", kinds, sites, err)
			continue
		}
		if pl.Feasible {
			made++
			if err := validator.Check(problem, pl); err != nil {
				t.Error(err)
			}
		} else if fits := !slices.ContainsFunc(kinds, func(n corral.Resources) bool {
			return !slices.ContainsFunc(sites, func(s plan.Site) bool { return s.Has(n) })
		}); fits {
			t.Errorf("no plan for %v at %v: %q", kinds, sites, pl.Reasons)
		}
	}
	if made < 15 {
		t.Errorf("only %d plans were made", made)
	}
}

// Special tasks that no single node has room for get hosts of several kinds.
func TestSpecialTasksOfSeveralKinds(t *testing.T) {
	t.Parallel()
	site := cluster("mixed", ofNodes(4, 16, 64_000, 0), ofNodes(1, 16, 64_000, 4), ofNodes(1, 16, 512_000, 1))
	needs := []corral.Resources{{CPUs: 1, MemoryMiB: 1000, GPUs: 4}, {CPUs: 1, MemoryMiB: 400_000, GPUs: 1}}
	work := bag(40, func(i int) corral.Resources {
		if i < len(needs) {
			return needs[i]
		}
		return corral.Resources{CPUs: 1, MemoryMiB: 1000}
	})
	problem := plan.Problem{Work: work, Sites: []plan.Site{site}}
	pl, err := planner.Make(problem, plan.Goal{Objective: plan.Makespan}, planner.Options{})
	if err != nil || !pl.Feasible {
		t.Errorf("Make() = %v, %q; want a plan", err, pl.Reasons)
	}
}

// The local disk of a node, which is not requested, does not limit how many hosts are on it.
func TestDiskIsNotRequested(t *testing.T) {
	t.Parallel()
	site := cluster("disks", ofNodes(2, 16, 64_000, 0))
	site.Nodes[0].DiskMiB, site.Host.DiskMiB = 400_000, 400_000
	problem := plan.Problem{Work: bag(64, func(int) corral.Resources {
		return corral.Resources{CPUs: 1, MemoryMiB: 100, DiskMiB: 100}
	}), Sites: []plan.Site{site}}
	pl, err := planner.Make(problem, plan.Goal{Objective: plan.Makespan}, planner.Options{Shape: 4})
	if err != nil || !pl.Feasible || pl.PeakCPUs != 32 {
		t.Errorf("Make() = %v, %d cpus, %q; want 32 cpus", err, pl.PeakCPUs, pl.Reasons)
	}
}
