package queuemodel

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/slot"
)

// A node is a node with its free cpus and memory over time. Instants count from the look.
type node struct {
	name     string
	cpus     int
	memory   int // MiB; 0: not known
	queues   []string
	freeCPUs *slot.Profile
	freeMiB  *slot.Profile // nil: the memory is not known
	unshown  int           // cpus held by jobs that are not shown
}

func newNode(n corral.QueueNode) *node {
	v := &node{name: n.Name, cpus: max(1, n.CPUs), memory: n.MemoryMiB, queues: n.Queues, unshown: n.Held}
	v.freeCPUs = slot.NewProfile(v.cpus, 0)
	if v.memory > 0 {
		v.freeMiB = slot.NewProfile(v.memory, 0)
	}
	return v
}

// clone returns an independent copy.
func (n *node) clone() *node {
	c := *n
	c.freeCPUs = n.freeCPUs.Clone()
	if n.freeMiB != nil {
		c.freeMiB = n.freeMiB.Clone()
	}
	return &c
}

// A piece is the part of one node that a job holds.
type piece struct {
	cpus, memory int
	whole        bool
}

// of returns the cpus and the memory of a piece on a node. A piece that is larger than the node, as after a change of
// the node, is cut.
func (p piece) of(n *node) (cpus, memory int) {
	if p.whole {
		return n.cpus, n.memory
	}
	return min(p.cpus, n.cpus), min(p.memory, n.memory)
}

// fits reports whether a node is large enough for a piece.
func (n *node) fits(p piece) bool {
	return p.cpus <= n.cpus && (n.memory == 0 || p.memory <= n.memory)
}

// fit returns the earliest instant, not before from, at which a node has room for a piece.
func (n *node) fit(from, length time.Duration, p piece) (at time.Duration, ok bool) {
	cpus, memory := p.of(n)
	for at = from; ; {
		if at, ok = n.freeCPUs.Fit(at, length, cpus); !ok || n.freeMiB == nil || memory == 0 {
			return at, ok
		}
		later, ok := n.freeMiB.Fit(at, length, memory)
		if !ok || later == at {
			return later, ok
		}
		at = later
	}
}

// take holds a piece of a node; of what is not free, it holds as much as is, because a look may be inconsistent.
func (n *node) take(from, to time.Duration, p piece) {
	if from, to = max(0, from), max(0, to); to <= from {
		return
	}
	cpus, memory := p.of(n)
	atMost(n.freeCPUs, from, to, cpus)
	if n.freeMiB != nil {
		atMost(n.freeMiB, from, to, memory)
	}
}

// close takes a node out of service for a time: nothing is free then.
func (n *node) close(from, to time.Duration) {
	n.take(from, to, piece{cpus: n.cpus, memory: n.memory, whole: true})
}

// atMost takes up to k processors at each instant of an interval.
func atMost(p *slot.Profile, from, to time.Duration, k int) {
	if p.Least(from, to) >= k {
		p.Take(from, to, k)
		return
	}
	var changes []slot.Change
	end := slot.Forever
	for at, free := range backwards(p) {
		if a, b := max(at, from), min(end, to); a < b {
			changes = append(changes, slot.Change{From: a, To: b, Free: -min(k, free)})
		}
		end = at
	}
	*p = *p.With(changes)
}

// backwards yields the steps of a profile, the last one first.
func backwards(p *slot.Profile) func(yield func(time.Duration, int) bool) {
	type step struct {
		at   time.Duration
		free int
	}
	var all []step
	for at, free := range p.Steps() {
		all = append(all, step{at, free})
	}
	slices.Reverse(all)
	return func(yield func(time.Duration, int) bool) {
		for _, s := range all {
			if !yield(s.at, s.free) {
				return
			}
		}
	}
}
