package dispatch

import (
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// A roster is a list of members, sorted by the ids of their slots. It has at most hundreds of entries, so a slice with
// binary search is fast enough, and Workers can list them in order.
type roster []*member

// get returns the member with this id, or nil.
func (r roster) get(id string) *member {
	if i, ok := r.find(id); ok {
		return r[i]
	}
	return nil
}

// find returns the index of the member with this id, or the index where it belongs.
func (r roster) find(id string) (int, bool) {
	byID := func(m *member, id string) int { return strings.Compare(m.slot.ID, id) }
	return slices.BinarySearchFunc(r, id, byID)
}

// besides returns the total number of CPUs of the connected workers of about's attempt, excluding about itself.
func (r roster) besides(about corral.Worker) (cpus int) {
	for _, m := range r {
		if m.conn != nil && m.about.Attempt == about.Attempt && m.slot.ID != about.ID {
			cpus += m.about.CPUs
		}
	}
	return cpus
}

// add adds a new member with this id.
func (r *roster) add(id string) *member {
	m := newMember(id)
	i, _ := r.find(id)
	*r = slices.Insert(*r, i, m)
	return m
}

// drop removes m, unless another member has taken its place.
func (r *roster) drop(m *member) {
	if i, ok := r.find(m.slot.ID); ok && (*r)[i] == m {
		*r = slices.Delete(*r, i, i+1)
	}
}
