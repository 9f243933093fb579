package wfformat

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral/workflow"
)

// compareLists warns where the lists of parents and those of children disagree. WfFormat says each edge twice; an
// edge in either list counts, so that a task never starts too early. If one kind of list is empty throughout, as in
// files written by hand, the other one speaks alone.
func (r *reader) compareLists() error {
	edges, err := r.builder.Edges()
	if err != nil {
		return err
	}
	var up, down [][2]int
	for k, e := range edges {
		if r.ofChildren[k] {
			down = append(down, e)
		} else {
			up = append(up, e)
		}
	}
	if len(up) > 0 && len(down) > 0 {
		up, down = sorted(up), sorted(down)
		r.warnOfMissing(up, down, "parents", "children")
		r.warnOfMissing(down, up, "children", "parents")
	}
	return nil
}

// sorted sorts edges in place and drops repetitions.
func sorted(edges [][2]int) [][2]int {
	slices.SortFunc(edges, byEnds)
	return slices.Compact(edges)
}

func byEnds(x, y [2]int) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) }

// warnOfMissing warns of the first edge of one kind of list that the other kind lacks. Both are sorted.
func (r *reader) warnOfMissing(edges, other [][2]int, in, lack string) {
	only := slices.DeleteFunc(slices.Clone(edges), func(e [2]int) bool {
		_, ok := slices.BinarySearchFunc(other, e, byEnds)
		return ok
	})
	if len(only) == 0 {
		return
	}
	parent, child := only[0][0], only[0][1]
	r.builder.Warn(r.wf.Place(min(parent, child)), "%s -> %s is in a list of %s but in none of %s; it counts%s",
		r.wf.Tasks[parent].ID, r.wf.Tasks[child].ID, in, lack, workflow.AndMore(len(only)-1))
}
