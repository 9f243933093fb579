package workflow

import (
	"cmp"
	"fmt"
	"slices"
)

// Parts represents a workflow and its subworkflows, except jobs, as nested workflows, for formats in which each of them
// has a separate file. An inner subworkflow is a part of its own, and appears as a single item in the enclosing part.
//
// An item of a part is an int: the index of a task, or ^index of a part.
type Parts struct {
	All    []Part        // the first is the workflow, and an inner part follows the enclosing part
	In     []int         // :: task → the innermost part that contains it
	Before map[int][]int // :: item → the items that precede it, omitting pairs of two tasks

	wf *Workflow
	// :: task → depth, from 1, of the innermost part that contains the task and a child or parent of it; 0: none.
	child, parent []int
}

// A Part is a workflow or subworkflow in Parts.
type Part struct {
	First, End int          // the range of its tasks, including those of inner parts
	Outer      int          // the enclosing part; -1: it is the workflow
	Sub        *Subworkflow // nil: it is the workflow
	Items      []int        // its direct items, in the order of the tasks

	depth         int // number of enclosing parts
	firsts, lasts int // numbers of its tasks without a parent in the part, and without a child in it
}

// A PartError reports why a workflow cannot be divided into parts, with a task as an example. Reason names the feature
// that the parts cannot express, such as "an order after task …".
type PartError struct {
	Task   int
	Reason string
}

func (e *PartError) Error() string { return e.Reason }

func (p *Parts) refuse(i int, format string, args ...any) error {
	return &PartError{i, fmt.Sprintf(format, args...)}
}

// PartsOf divides a workflow into parts, nested to at most the depth deepest. It fails with a *PartError if
// subworkflows overlap without being nested, or if the order of tasks cannot be expressed between items: an item that
// precedes a subworkflow must precede all of the subworkflow's first tasks, and an item that follows a subworkflow must
// follow all of its last tasks. Before omits the predecessors of a final task, which follows all other tasks.
func PartsOf(w *Workflow, deepest int) (*Parts, error) {
	p := &Parts{
		All: []Part{{End: len(w.Tasks), Outer: -1}}, In: make([]int, len(w.Tasks)), Before: make(map[int][]int), wf: w,
	}
	if err := p.split(deepest); err != nil {
		return nil, err
	}
	for k := range p.All {
		p.itemize(k)
	}
	if len(p.All) == 1 {
		return p, nil
	}
	p.findEnds()
	return p, p.connect()
}

// split determines the parts, and the innermost part of each task.
func (p *Parts) split(deepest int) error {
	at := 0
	for _, s := range nested(p.wf) {
		for p.All[at].End <= s.First {
			at = p.All[at].Outer
		}
		switch around := &p.All[at]; {
		case s.End > around.End:
			return p.refuse(s.First, "subworkflows %q and %q, which overlap without being nested", around.Sub.Name,
				s.Name)
		case around.depth == deepest-1:
			return p.refuse(s.First, "workflows nested more than %d levels deep", deepest)
		}
		p.All = append(p.All, Part{First: s.First, End: s.End, Outer: at, depth: p.All[at].depth + 1, Sub: s})
		at = len(p.All) - 1
	}
	for k := range p.All {
		for i := p.All[k].First; i < p.All[k].End; i++ {
			p.In[i] = k
		}
	}
	return nil
}

// nested returns the subworkflows other than jobs; inner ones follow the enclosing ones.
func nested(w *Workflow) (all []*Subworkflow) {
	for k := range w.Subworkflows {
		if s := &w.Subworkflows[k]; !s.Job {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *Subworkflow) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.End, a.End))
	})
	return all
}

// itemize determines the items of a part.
func (p *Parts) itemize(k int) {
	part := &p.All[k]
	for i := part.First; i < part.End; {
		inner := p.In[i]
		if inner == k {
			part.Items = append(part.Items, i)
			i++
			continue
		}
		for p.All[inner].Outer != k {
			inner = p.All[inner].Outer
		}
		part.Items = append(part.Items, ^inner)
		i = p.All[inner].End
	}
}

// meet returns the innermost part that contains both tasks, and the items of that part that are or contain the tasks.
func (p *Parts) meet(i, j int) (x, y, in int) {
	x, y = i, j
	a, b := p.In[i], p.In[j]
	for a != b {
		if p.All[a].depth >= p.All[b].depth {
			x, a = ^a, p.All[a].Outer
		} else {
			y, b = ^b, p.All[b].Outer
		}
	}
	return x, y, a
}

// findEnds determines the first and the last tasks of all parts.
func (p *Parts) findEnds() {
	p.child, p.parent = make([]int, len(p.In)), make([]int, len(p.In))
	for i := range p.In {
		for _, before := range p.wf.Graph.Parents(i) {
			_, _, in := p.meet(before, i)
			depth := p.All[in].depth + 1
			p.child[before], p.parent[i] = max(p.child[before], depth), max(p.parent[i], depth)
		}
	}
	for i, k := range p.In {
		for ; k >= 0; k = p.All[k].Outer {
			if p.isLast(i, k) {
				p.All[k].lasts++
			}
			if p.isFirst(i, k) {
				p.All[k].firsts++
			}
		}
	}
}

// isLast reports whether a task has no child in a part, and isFirst whether a task has no parent in a part.
func (p *Parts) isLast(i, k int) bool  { return p.child[i] <= p.All[k].depth }
func (p *Parts) isFirst(i, k int) bool { return p.parent[i] <= p.All[k].depth }

// connect determines the order of the items that are parts.
func (p *Parts) connect() error {
	edges := make(map[[2]int]int) // :: pair of items → number of edges between their tasks
	if err := p.eachAcross(func(before, i, x, y int) bool {
		edges[[2]int{x, y}]++
		return (x >= 0 || p.isLast(before, ^x)) && (y >= 0 || p.isFirst(i, ^y))
	}); err != nil {
		return err
	}
	return p.eachAcross(func(_, _, x, y int) bool {
		n := edges[[2]int{x, y}]
		edges[[2]int{x, y}] = 0 // handled
		if n == 0 || y >= 0 && p.wf.Tasks[y].Control != nil && p.wf.Tasks[y].Control.Final {
			return true
		}
		p.Before[y] = append(p.Before[y], x)
		lasts, firsts := 1, 1
		if x < 0 {
			lasts = p.All[^x].lasts
		}
		if y < 0 {
			firsts = p.All[^y].firsts
		}
		return n == lasts*firsts
	})
}

// eachAcross calls fits for each edge between two items if at least one of the items is a part. It stops with an error
// if fits returns false.
func (p *Parts) eachAcross(fits func(before, i, x, y int) bool) error {
	for i := range p.In {
		for _, before := range p.wf.Graph.Parents(i) {
			x, y, _ := p.meet(before, i)
			if x >= 0 && y >= 0 || fits(before, i, x, y) {
				continue
			}
			part := ^y
			if y >= 0 {
				part = ^x
			}
			return p.refuse(i, "an order after task %q that does not apply to all of subworkflow %q",
				p.wf.Tasks[before].ID, p.All[part].Sub.Name)
		}
	}
	return nil
}
