package validator

// The rule for hosts on nodes. To accept hosts, a packing is found; to refuse them, a bound proves that there is none.

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A demand is a number of equal hosts that are held at an instant.
type demand struct {
	host  corral.Resources
	count int
}

// nodes checks that the hosts that pilots hold at a queue at any time fit on its nodes.
func (c *checker) nodes() {
	for i := range c.problem.Sites {
		s := &c.problem.Sites[i]
		if len(s.Nodes) == 0 {
			continue
		}
		var held []demand
		moves := c.moves(s)
		for k, m := range moves {
			n := slices.IndexFunc(held, func(d demand) bool { return d.host == m.host })
			if n < 0 {
				n, held = len(held), append(held, demand{host: m.host})
			}
			held[n].count += m.count
			last := k+1 == len(moves) || moves[k+1].at != m.at // the hosts that start at an instant meet all others
			if last && m.count > 0 && !packed(s.Nodes, held) && unpackable(s.Nodes, held) {
				c.breach("nodes", "site %s has no nodes for all hosts that are held at %s", s.Name, m.at)
				break
			}
		}
	}
}

// A move is the start or, with a negative count, the end of equal hosts.
type move struct {
	at corral.Seconds
	demand
}

// moves lists the starts and ends of the pilots of a queue by time; at one instant ends come first.
func (c *checker) moves(s *plan.Site) (all []move) {
	for _, q := range c.plan.Pilots {
		if q.Site != s.Name || q.Queue != s.Queue || q.Hosts < 1 || q.CPUs < 1 {
			continue
		}
		host := corral.Resources{CPUs: q.CPUs, MemoryMiB: q.MemoryMiB, GPUs: q.GPUs}
		all = append(all, move{q.Start, demand{host, q.Hosts}}, move{q.End, demand{host, -q.Hosts}})
	}
	slices.SortFunc(all, func(a, b move) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.count, b.count)) })
	return all
}

// packed reports whether hosts fit if each node in turn takes as many as it can: those first that need the largest part
// of any component of a node.
func packed(types []corral.NodeType, held []demand) bool {
	held = slices.Clone(held)
	part := func(d demand) (most float64) {
		for _, t := range types {
			for _, of := range [][2]int{{d.host.CPUs, t.CPUs}, {d.host.MemoryMiB, t.MemoryMiB}, {d.host.GPUs, t.GPUs}} {
				if of[1] > 0 {
					most = max(most, float64(of[0])/float64(of[1]))
				}
			}
		}
		return most
	}
	slices.SortStableFunc(held, func(a, b demand) int { return cmp.Compare(part(b), part(a)) })
	types = slices.Clone(types)
	slices.SortStableFunc(types, func(a, b corral.NodeType) int { // nodes with few GPUs and little memory first
		return cmp.Or(a.GPUs-b.GPUs, a.MemoryMiB-b.MemoryMiB, a.CPUs-b.CPUs)
	})
	for _, t := range types {
		for range t.Count {
			left, taken := t.Resources, 0
			for k := range held {
				d := &held[k]
				for d.count > 0 && d.host.FitIn(left) && (taken == 0 || !t.Whole) {
					left, taken = left.Minus(d.host), taken+1
					d.count--
				}
			}
			if taken == 0 {
				break // equal nodes take none, either
			}
		}
	}
	return !slices.ContainsFunc(held, func(d demand) bool { return d.count > 0 })
}

// unpackable reports whether the nodes have too little of a component for all hosts together, or too few places for the
// hosts that are at least as large as some host.
func unpackable(types []corral.NodeType, held []demand) bool {
	var need, has corral.Resources
	for _, d := range held {
		need = need.Plus(times(d.count, d.host))
	}
	for _, t := range types {
		has = has.Plus(times(t.Count, t.Resources))
	}
	if !need.FitIn(has) {
		return true
	}
	for _, least := range held {
		places, hosts := 0, 0
		for _, t := range types {
			each := 0
			for left := t.Resources; least.host.FitIn(left) && (each == 0 || !t.Whole); each++ {
				left = left.Minus(least.host)
			}
			places += each * t.Count
		}
		for _, d := range held {
			if least.host.FitIn(d.host) {
				hosts += d.count
			}
		}
		if hosts > places {
			return true
		}
	}
	return false
}

func times(n int, r corral.Resources) corral.Resources {
	return corral.Resources{CPUs: n * r.CPUs, MemoryMiB: n * r.MemoryMiB, GPUs: n * r.GPUs}
}
