package nodes

import (
	"slices"

	"github.com/corral-pilot/corral"
)

// A Tally counts the hosts that are on a site's nodes at a time. Without types, anything fits. It is not safe for
// concurrent use.
type Tally struct {
	types []corral.NodeType
	held  []Hosts
	most  map[corral.Resources]int // number of equal hosts that fit, as far as computed
}

// NewTally returns the tally of empty nodes.
func NewTally(types []corral.NodeType) *Tally {
	return &Tally{types: types, most: map[corral.Resources]int{}}
}

// Add counts n more hosts; n is negative if they leave.
func (t *Tally) Add(n int, each corral.Resources) {
	each = known(each)
	i := slices.IndexFunc(t.held, func(h Hosts) bool { return h.Each == each })
	if i < 0 {
		i, t.held = len(t.held), append(t.held, Hosts{Each: each})
	}
	if t.held[i].Count += n; t.held[i].Count == 0 {
		t.held = slices.Delete(t.held, i, i+1)
	}
}

// Fits reports whether the nodes have room for all counted hosts.
func (t *Tally) Fits() bool {
	if len(t.types) == 0 || len(t.held) == 0 {
		return true
	}
	if len(t.held) > 1 {
		return Fit(t.types, t.held)
	}
	h := t.held[0]
	most, ok := t.most[h.Each]
	if !ok {
		most = Most(t.types, h.Each)
		t.most[h.Each] = most
	}
	return h.Count <= most
}

// Takes reports whether the nodes have room for n more hosts.
func (t *Tally) Takes(n int, each corral.Resources) bool {
	t.Add(n, each)
	defer t.Add(-n, each)
	return t.Fits()
}
