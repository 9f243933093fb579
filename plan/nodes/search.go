package nodes

import (
	"slices"

	"github.com/corral-pilot/corral"
)

// A search tries all packings of a few hosts, the largest first. Hosts of one shape are placed in the order of the
// nodes, and of nodes with equal room only the first is tried.
type search struct {
	nodes []group // one node each
	hosts []corral.Resources
	left  int // placements that may still be tried
}

// exactHosts is the maximum number of hosts for which all packings are tried, and mostTries is the maximum number of
// placements; beyond it there is taken to be no packing.
const (
	exactHosts = 12
	mostTries  = 100_000
)

// newSearch returns a search for a number of hosts.
func newSearch(types []corral.NodeType, hosts []Hosts, count int) *search {
	s := &search{left: mostTries}
	for _, t := range types {
		for range min(t.Count, count) {
			s.nodes = append(s.nodes, group{1, t.Resources, t.Whole})
		}
	}
	for _, h := range hosts {
		s.hosts = append(s.hosts, slices.Repeat([]corral.Resources{h.Each}, h.Count)...)
	}
	return s
}

// place places the hosts from the kth on, the next one not before a node, and reports whether it succeeded.
func (s *search) place(k, from int) bool {
	if k == len(s.hosts) {
		return true
	}
	for i := from; i < len(s.nodes) && s.left > 0; i++ {
		n := s.nodes[i]
		if capacity(n.free, n.whole, s.hosts[k]) == 0 || slices.Contains(s.nodes[from:i], n) {
			continue
		}
		s.left--
		s.nodes[i] = n.after(1, 1, s.hosts[k])
		next := 0
		if k+1 < len(s.hosts) && s.hosts[k+1] == s.hosts[k] {
			next = i
		}
		if s.place(k+1, next) {
			return true
		}
		s.nodes[i] = n
	}
	return false
}
