package planner

import "github.com/corral-pilot/corral"

// First fit is the rule of list schedulers and dispatchers: hosts are in order of preference, and a task is placed on
// the first host that currently has room for it. Examining each host for each task would be too slow for a plan with
// thousands of hosts.
//
// The invariant: for each resource, the value of a tree node is at least the maximum of the free amounts of the hosts
// below the node. A task that fits on one of these hosts therefore fits into the node, but not vice versa, so a search
// may have to backtrack.

// A hostTree holds the free resources of each host as a tree of component-wise maxima. It finds the first host with
// room for a task in O(log hosts) steps if tasks need only one kind of resource, which is the usual case. Hosts are
// numbered from 0. It is not safe for concurrent use.
type hostTree struct {
	leaves int // a power of two
	tree   []corral.Resources
}

// newHostTree returns the given number of hosts without free resources.
func newHostTree(n int) *hostTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return &hostTree{leaves, make([]corral.Resources, 2*leaves)}
}

// at returns the free resources of a host.
func (h *hostTree) at(host int) corral.Resources { return h.tree[h.leaves+host] }

// set sets the free resources of a host.
func (h *hostTree) set(host int, free corral.Resources) {
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

// first returns the first host that has room for need and for which suits returns true, or -1.
func (h *hostTree) first(need corral.Resources, suits func(host int) bool) int {
	return h.firstBelow(1, need, suits)
}

func (h *hostTree) firstBelow(i int, need corral.Resources, suits func(host int) bool) int {
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
