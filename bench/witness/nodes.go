package main

import (
	"math/rand/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// onNodes gives the sites of a problem nodes of one to three types, some with much memory, GPUs or to be had as a whole
// only, and its tasks needs of several kinds. A few tasks need a GPU, or many times the memory of the others.
func onNodes(p *plan.Problem, number int) {
	rng := rand.New(rand.NewPCG(uint64(number), 'n'))
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	most := corral.Resources{}
	for i := range p.Sites {
		s := &p.Sites[i]
		base := corral.Resources{CPUs: max(4, s.Host.CPUs), MemoryMiB: pick(1000, 2000, 4000) * max(4, s.Host.CPUs)}
		types := []corral.NodeType{{Count: pick(1, 2, 4, 8, 16), Resources: base}}
		if rng.IntN(2) == 0 {
			types = append(types, corral.NodeType{Count: pick(1, 2), Resources: corral.Resources{CPUs: base.CPUs,
				MemoryMiB: 8 * base.MemoryMiB}})
		}
		if rng.IntN(2) == 0 || i+1 == len(p.Sites) && most.GPUs == 0 {
			types = append(types, corral.NodeType{Count: pick(1, 4), Resources: corral.Resources{CPUs: base.CPUs,
				MemoryMiB: base.MemoryMiB, GPUs: pick(1, 2, 4)}})
		}
		s.CPUs, s.Host = 0, corral.Resources{DiskMiB: plan.Unlimited}
		for k := range types {
			t := &types[k]
			t.DiskMiB, t.Whole = plan.Unlimited, rng.IntN(8) == 0
			s.CPUs, s.Host, most = s.CPUs+t.Count*t.CPUs, s.Host.Most(t.Resources), most.Most(t.Resources)
		}
		s.Nodes = types
	}
	ordinary, much := pick(100, 500, 1500), min(most.MemoryMiB, pick(4000, 8000, 32_000))
	rare, gpus, memory := 1+rng.IntN(40), rng.IntN(3) > 0, rng.IntN(3) > 0
	for i := range p.Work.Tasks {
		needs := corral.Resources{CPUs: 1, MemoryMiB: ordinary << rng.IntN(2)}
		switch special := rng.IntN(rare) == 0; {
		case special && gpus && rng.IntN(2) == 0:
			needs = corral.Resources{CPUs: 1, MemoryMiB: ordinary, GPUs: 1}
		case special && memory:
			needs = corral.Resources{CPUs: 1, MemoryMiB: much}
		}
		p.Work.Task(i).Needs = needs
	}
}
