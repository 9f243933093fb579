package planner

import "github.com/corral-pilot/corral"

// Rooms is what is free on each line, as a tree of component-wise maxima, so that the first line on which a task fits
// is found in O(log lines) when tasks ask for one kind of resource, which is nearly always.
type rooms struct {
	leaves int // a power of two
	tree   []corral.Resources
}

func newRooms(lines int) *rooms {
	leaves := 1
	for leaves < lines {
		leaves *= 2
	}
	return &rooms{leaves, make([]corral.Resources, 2*leaves)}
}

func (r *rooms) at(line int) corral.Resources { return r.tree[r.leaves+line] }

func (r *rooms) set(line int, free corral.Resources) {
	i := r.leaves + line
	r.tree[i] = free
	for i /= 2; i > 0; i /= 2 {
		most := r.tree[2*i].Most(r.tree[2*i+1])
		if r.tree[i] == most {
			return
		}
		r.tree[i] = most
	}
}

// first returns the first line that has room for need and that suits, or -1.
func (r *rooms) first(need corral.Resources, suits func(line int) bool) int {
	return r.firstBelow(1, need, suits)
}

func (r *rooms) firstBelow(i int, need corral.Resources, suits func(line int) bool) int {
	if !need.FitIn(r.tree[i]) {
		return -1
	}
	if i >= r.leaves {
		if suits(i - r.leaves) {
			return i - r.leaves
		}
		return -1
	}
	if line := r.firstBelow(2*i, need, suits); line >= 0 {
		return line
	}
	return r.firstBelow(2*i+1, need, suits)
}
