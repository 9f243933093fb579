package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// blocks are pilots with the given number of hosts with one CPU, one after another. The next is requested when the last
// has ended, as in the thesis, or such that the two overlap.
type blocks struct {
	hosts    int
	walltime time.Duration // 0: a single block, for as long as the run takes
	overlap  time.Duration
}

// A place is where blocks are requested, and the time that takes; the zero place provides them at once.
type place struct {
	setup, allocation time.Duration
	queue             *queue.Queue // contains the jobs among which they wait; nil: no other jobs
}

// endless is a walltime that no run reaches.
const endless = 60 * 24 * time.Hour

// leaves is how soon an idle block ends: the remaining jobs do not fit into its time, or no jobs remain.
const leaves = time.Minute

// run simulates a workflow on blocks, in a cluster, and returns the duration from the beginning to the last task's end.
func (b blocks) run(a asleep, rule clustering.Rule, at place, in plan.Cluster) (time.Duration, error) {
	site := sim.Site{Batch: at.queue, Site: plan.Site{Name: "hpc", Hosts: b.hosts, Pilots: plan.Unlimited,
		CPUs: plan.Unlimited, Walltime: plan.Unbounded, Overhead: at.allocation,
		Host: corral.Resources{CPUs: 1, MemoryMiB: 1024, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}}}
	s := sim.Scenario{Work: a.spec(rule), Sites: []sim.Site{site}, Stall: endless, Cluster: sim.Cluster{Cluster: in}}
	block := sim.Ask{Pilot: plan.Pilot{Site: "hpc",
		Shape: corral.Shape{Hosts: b.hosts, CPUs: 1, MemoryMiB: 1024,
			Walltime: corral.Seconds(cmp.Or(b.walltime, endless))},
		Submit: corral.Seconds(at.setup)}}
	if b.overlap > 0 {
		block.Overlap, block.Resubmit = b.overlap, resubmit.Policy{Mode: resubmit.Forever, Retries: 100}
	}
	if b.walltime == 0 {
		s.Asks = []sim.Ask{block}
	} else {
		block.Idle = leaves
		s.Control = oneAfterAnother(block)
	}
	t := sim.Run(s)
	if t.Ending != sim.Done {
		return 0, fmt.Errorf("%s on blocks of %d: %s %s", a.wf.Name, b.hosts, t.Ending, t.Why)
	}
	return t.Makespan(), nil
}

// oneAfterAnother requests a block when none is left.
func oneAfterAnother(block sim.Ask) sim.Control {
	return func(now time.Duration, v sim.View) []sim.Ask {
		for _, h := range v.Pilots {
			if h.End < 0 {
				return nil
			}
		}
		if len(v.Pilots) == 0 && now > 0 {
			return nil // it has been requested, but not submitted
		}
		return []sim.Ask{block}
	}
}
