package nodes

import (
	"cmp"
	"math"
	"slices"

	"github.com/corral-pilot/corral"
)

// Hosts are a number of equal hosts.
type Hosts struct {
	Count int
	Each  corral.Resources
}

// Most returns the largest number of equal hosts that fit on nodes at once. It is exact.
func Most(types []corral.NodeType, each corral.Resources) (most int) {
	each = known(each)
	for _, t := range types {
		most += t.Count * capacity(t.Resources, t.Whole, each)
	}
	return most
}

// Room returns the largest host of a number of cpus that fits on every type of node on which the needs fit, with its
// share of the memory and the GPUs of a node, and at least what is needed; ok is false if they fit on no node. Hosts of
// such a share fill the nodes of all these types. Its disk is that of the whole node, because disk is not requested.
func Room(types []corral.NodeType, cpus int, needs corral.Resources) (share corral.Resources, ok bool) {
	needs.CPUs = max(needs.CPUs, cpus)
	share = corral.Resources{CPUs: cpus, MemoryMiB: corral.Unlimited, GPUs: corral.Unlimited, DiskMiB: corral.Unlimited}
	for _, t := range types {
		if !needs.FitIn(t.Resources) {
			continue
		}
		ok = true
		share.MemoryMiB = min(share.MemoryMiB, part(t.MemoryMiB, cpus, t.CPUs))
		share.GPUs = min(share.GPUs, part(t.GPUs, cpus, t.CPUs))
		share.DiskMiB = min(share.DiskMiB, t.DiskMiB)
	}
	needs.CPUs = cpus
	return share.Most(needs), ok
}

// part returns n·cpus/of; an unknown n stays unknown.
func part(n, cpus, of int) int {
	if n >= corral.Unlimited {
		return n
	}
	return n * cpus / max(1, of)
}

// Fit reports whether it finds a packing of hosts on nodes.
func Fit(types []corral.NodeType, hosts []Hosts) bool {
	all, few := sorted(hosts), 0
	for _, h := range all {
		few += h.Count
	}
	if newPacking(types).all(all) {
		return true
	}
	return few <= exactHosts && !Exceeds(types, hosts) && newSearch(types, all, few).place(0, 0)
}

// Exceeds reports whether a bound proves that hosts do not fit on nodes: they need more of a component than all nodes
// have, or there are more hosts at least as large as some host than hosts like that one would fit.
func Exceeds(types []corral.NodeType, hosts []Hosts) bool {
	var has, needs [4]int
	for _, t := range types {
		for k, n := range components(t.Resources) {
			has[k] = min(corral.Unlimited, has[k]+t.Count*min(n, corral.Unlimited/max(1, t.Count)))
		}
	}
	list := sorted(hosts)
	for _, h := range list {
		for k, n := range components(h.Each) {
			needs[k] += h.Count * n
		}
	}
	for k := range needs {
		if needs[k] > has[k] && has[k] < corral.Unlimited {
			return true
		}
	}
	for _, least := range list {
		count := 0
		for _, h := range list {
			if least.Each.FitIn(h.Each) {
				count += h.Count
			}
		}
		if count > Most(types, least.Each) {
			return true
		}
	}
	return false
}

// known returns what a host requests: neither unknown components nor disk.
func known(r corral.Resources) corral.Resources {
	for _, n := range []*int{&r.CPUs, &r.MemoryMiB, &r.GPUs, &r.DiskMiB} {
		if *n >= corral.Unlimited || n == &r.DiskMiB {
			*n = 0
		}
	}
	return r
}

func components(r corral.Resources) [4]int { return [4]int{r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB} }

// capacity returns the number of equal hosts that fit in the free room of a node. A whole node takes a single host.
func capacity(free corral.Resources, whole bool, each corral.Resources) int {
	most := math.MaxInt32
	if whole {
		most = 1
	}
	has := components(free)
	for k, n := range components(each) {
		if n > 0 {
			most = min(most, max(0, has[k])/n)
		}
	}
	return most
}

// sorted returns the hosts by shape, the largest share of cpus, memory and GPUs first; equal shapes are counted
// together.
func sorted(hosts []Hosts) []Hosts {
	var all []Hosts
	for _, h := range hosts {
		h.Each = known(h.Each)
		if i := slices.IndexFunc(all, func(o Hosts) bool { return o.Each == h.Each }); i >= 0 {
			all[i].Count += h.Count
		} else if h.Count > 0 {
			all = append(all, h)
		}
	}
	var most corral.Resources
	for _, h := range all {
		most = most.Most(h.Each)
	}
	size := func(h Hosts) (sum float64) {
		of := components(most)
		for k, n := range components(h.Each) {
			if of[k] > 0 {
				sum += float64(n) / float64(of[k])
			}
		}
		return sum
	}
	slices.SortStableFunc(all, func(a, b Hosts) int { return cmp.Compare(size(b), size(a)) })
	return all
}

// A packing holds the nodes in groups with equal free room.
type packing []group

type group struct {
	count int
	free  corral.Resources
	whole bool // takes a single host
}

func newPacking(types []corral.NodeType) *packing {
	var p packing
	for _, t := range types {
		p.put(group{t.Count, t.Resources, t.Whole})
	}
	return &p
}

// put adds nodes to the group with the same free room.
func (p *packing) put(g group) {
	if g.count <= 0 {
		return
	}
	for i := range *p {
		if (*p)[i].free == g.free && (*p)[i].whole == g.whole {
			(*p)[i].count += g.count
			return
		}
	}
	*p = append(*p, g)
}

// all places all hosts, and reports whether it succeeded.
func (p *packing) all(hosts []Hosts) bool {
	for _, h := range hosts {
		if !p.place(h) {
			return false
		}
	}
	return true
}

// place puts equal hosts on nodes, first on those that they leave the least room on.
func (p *packing) place(h Hosts) bool {
	for h.Count > 0 {
		best, least := -1, 0.0
		for i, g := range *p {
			if capacity(g.free, g.whole, h.Each) == 0 {
				continue
			}
			if left := spare(g.free, h.Each); best < 0 || left < least {
				best, least = i, left
			}
		}
		if best < 0 {
			return false
		}
		g := (*p)[best]
		per := capacity(g.free, g.whole, h.Each)
		if nodes := h.Count / per; nodes >= g.count {
			*p = slices.Delete(*p, best, best+1)
			p.put(g.after(g.count, per, h.Each))
			h.Count -= g.count * per
			continue
		}
		nodes, rest := h.Count/per, h.Count%per
		(*p)[best].count -= nodes
		p.put(g.after(nodes, per, h.Each))
		if rest > 0 {
			(*p)[best].count--
			p.put(g.after(1, rest, h.Each))
		}
		*p = slices.DeleteFunc(*p, func(g group) bool { return g.count == 0 })
		return true
	}
	return true
}

// after returns some nodes of a group with a number of hosts on each. A whole node with a host has no room.
func (g group) after(nodes, hosts int, each corral.Resources) group {
	if g.whole && hosts > 0 {
		return group{nodes, corral.Resources{}, true}
	}
	for range hosts {
		g.free = g.free.Minus(each)
	}
	return group{nodes, g.free, g.whole}
}

// spare measures how much of a node's known room a host leaves, as the sum of the shares of the components.
func spare(free, each corral.Resources) (sum float64) {
	has := components(free)
	for k, n := range components(each) {
		if has[k] > 0 && has[k] < corral.Unlimited {
			sum += float64(has[k]-n) / float64(has[k])
		}
	}
	return sum
}
