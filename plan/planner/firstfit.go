package planner

import "github.com/corral-pilot/corral"

// Hosts finds the first of many hosts on which a task fits.
//
// First fit is what list schedules and dispatchers do: hosts are in an order of preference, and a task goes to the
// earliest on which there is room for it now. A look at each host for each task is what a plan for thousands of hosts
// cannot afford.
//
// The one invariant: a node of the tree has, of each resource, at least what any host below it has free. That is
// necessary for a task to fit there, and not sufficient, so that a search may have to turn back.

// Hosts is what is free on each host, as a tree of component-wise maxima, so that the first one on which a task fits is
// found in O(log hosts) when tasks ask for one kind of resource, which is nearly always. Hosts are numbered from 0. It
// is one goroutine's.
type Hosts struct {
	leaves int // a power of two
	tree   []corral.Resources
}

// New returns so many hosts, of which nothing is free.
func New(hosts int) *Hosts {
	leaves := 1
	for leaves < hosts {
		leaves *= 2
	}
	return &Hosts{leaves, make([]corral.Resources, 2*leaves)}
}

// At returns what is free on a host.
func (h *Hosts) At(host int) corral.Resources { return h.tree[h.leaves+host] }

// Set says what is free on a host.
func (h *Hosts) Set(host int, free corral.Resources) {
	i := h.leaves + host
	h.tree[i] = free
	for i /= 2; i > 0; i /= 2 {
		most := h.tree[2*i].Most(h.tree[2*i+1])
		if h.tree[i] == most {
			return
		}
		h.tree[i] = most
	}
}

// First returns the first host that has room for need and that suits, or -1.
func (h *Hosts) First(need corral.Resources, suits func(host int) bool) int {
	return h.firstBelow(1, need, suits)
}

func (h *Hosts) firstBelow(i int, need corral.Resources, suits func(host int) bool) int {
	if !need.FitIn(h.tree[i]) {
		return -1
	}
	if i >= h.leaves {
		if suits(i - h.leaves) {
			return i - h.leaves
		}
		return -1
	}
	if host := h.firstBelow(2*i, need, suits); host >= 0 {
		return host
	}
	return h.firstBelow(2*i+1, need, suits)
}
