package main

import (
	"cmp"
	"slices"
)

// nodes is a type of node: Count machines of one size. On a whole node runs one host alone; others are shared.
type nodes struct {
	Count int `json:"count"`
	resources
	Whole bool `json:"whole"`
}

// A node is one machine.
type node struct {
	free  resources // that no host holds
	whole bool      // it takes one host
	hosts int       // that it holds
}

func (n *node) takes(host resources) bool { return (!n.whole || n.hosts == 0) && host.fitIn(n.free) }

// A rack is the set of nodes of one queue, with the hosts that the running pilots hold.
type rack struct {
	types []nodes
	all   []node
	held  map[int][]hosting // :: pilot → the places of its hosts
}

// A hosting is a host on a node.
type hosting struct {
	host resources
	node int
}

// newRack returns an empty rack. Small types come first, so that a small host does not take a large node.
func newRack(types []nodes) *rack {
	r := &rack{held: map[int][]hosting{}}
	for _, t := range types {
		t.resources = t.bounded()
		r.types = append(r.types, t)
	}
	slices.SortStableFunc(r.types, func(a, b nodes) int {
		return cmp.Or(a.CPUs-b.CPUs, a.GPUs-b.GPUs, a.MemoryMiB-b.MemoryMiB)
	})
	r.empty()
	return r
}

func (r *rack) empty() {
	r.all = r.all[:0]
	for _, t := range r.types {
		for range t.Count {
			r.all = append(r.all, node{free: t.resources, whole: t.Whole})
		}
	}
}

// fit places a host on the first node that has room for it.
func (r *rack) fit(host resources) (hosting, bool) {
	for i := range r.all {
		if n := &r.all[i]; n.takes(host) {
			n.free, n.hosts = n.free.minus(host), n.hosts+1
			return hosting{host, i}, true
		}
	}
	return hosting{}, false
}

// release removes a pilot's hosts.
func (r *rack) release(pilot int) {
	for _, h := range r.held[pilot] {
		n := &r.all[h.node]
		n.free, n.hosts = n.free.plus(h.host), n.hosts-1
	}
	delete(r.held, pilot)
}

// A verdict is the result of packing.
type verdict int

const (
	packed     verdict = iota
	impossible         // a bound proves that no packing exists
	undecided          // first fit decreasing found none, but the bound proves nothing
)

// hold adds a pilot's hosts. If the free room does not suffice, all hosts are packed again by first fit decreasing: the
// question is whether the plan's hosts fit the nodes at this instant, whatever the site's earlier choices were. If that
// fails, too, nothing changes.
func (r *rack) hold(pilot, hosts int, host resources) verdict {
	for range hosts {
		h, ok := r.fit(host)
		if !ok {
			r.release(pilot)
			return r.repack(pilot, hosts, host)
		}
		r.held[pilot] = append(r.held[pilot], h)
	}
	return packed
}

// repack packs all held hosts and those of one more pilot, the largest first. The size of a host is the greatest share
// that it takes of the largest node in any dimension.
func (r *rack) repack(pilot, hosts int, host resources) verdict {
	type item struct {
		pilot int
		host  resources
		size  float64
	}
	var items []item
	var all []resources
	add := func(pilot int, host resources) {
		items = append(items, item{pilot, host, r.share(host)})
		all = append(all, host)
	}
	for p, held := range r.held {
		for _, h := range held {
			add(p, h.host)
		}
	}
	for range hosts {
		add(pilot, host)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(b.size, a.size), a.pilot-b.pilot) })
	again := newRack(r.types) // so that a failure leaves r unchanged
	for _, it := range items {
		h, ok := again.fit(it.host)
		if !ok {
			if tooMany(r.types, all) {
				return impossible
			}
			return undecided
		}
		again.held[it.pilot] = append(again.held[it.pilot], h)
	}
	*r = *again
	return packed
}

// share returns the greatest share of the largest node that a host takes in any dimension.
func (r *rack) share(host resources) (most float64) {
	for d, need := range host.dimensions() {
		largest := 0
		for _, t := range r.types {
			largest = max(largest, t.dimensions()[d])
		}
		if largest > 0 {
			most = max(most, float64(need)/float64(largest))
		}
	}
	return most
}

// tooMany reports whether a bound proves that hosts do not fit on nodes of these types. Two bounds are tried. In each
// dimension the sum of the needs must not exceed what the nodes have. And for each need v in a dimension, the hosts
// that need v or more are counted: a node takes at most ⌊capacity ÷ least need⌋ of them in every dimension, and a whole
// node takes one.
func tooMany(types []nodes, hosts []resources) bool {
	for d := range dimensions {
		need, capacity := 0, 0
		values := map[int]bool{}
		for _, h := range hosts {
			need += h.dimensions()[d]
			values[h.dimensions()[d]] = true
		}
		for _, t := range types {
			capacity += t.Count * t.dimensions()[d]
		}
		if need > capacity {
			return true
		}
		for v := range values {
			// A subset of large hosts has a greater least need, so that fewer of them fit one node.
			large := slices.DeleteFunc(slices.Clone(hosts), func(h resources) bool { return h.dimensions()[d] < v })
			if len(large) > mostHosts(types, large) {
				return true
			}
		}
	}
	return false
}

// mostHosts returns an upper bound on the number of hosts at least as large as the least of each dimension that nodes
// of these types can hold.
func mostHosts(types []nodes, hosts []resources) (most int) {
	least := hosts[0].dimensions()
	for _, h := range hosts {
		for d, need := range h.dimensions() {
			least[d] = min(least[d], need)
		}
	}
	for _, t := range types {
		each := len(hosts)
		if t.Whole {
			each = 1
		}
		for d, capacity := range t.dimensions() {
			if least[d] > 0 {
				each = min(each, capacity/least[d])
			}
		}
		most += t.Count * each
	}
	return most
}
