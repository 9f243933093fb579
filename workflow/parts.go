package workflow

import (
	"cmp"
	"fmt"
	"slices"
)

// Parts are a workflow and its subworkflows that are no jobs, as workflows within each other: for formats that have a
// file for each. An inner subworkflow is a part of its own, and in the part around it one thing to do.
//
// What is in a part is known by its items: a task by its number, and a part by ^number.
type Parts struct {
	All    []Part        // the first is the workflow, and an inner one follows the one around it
	In     []int         // :: task → the part that it is directly in
	Before map[int][]int // :: item → the items before it, where it or they are parts

	wf            *Workflow
	child, parent []int // :: task → how deep is the innermost part in which it has one, from 1; 0: it has none
}

// A Part is one of the Parts.
type Part struct {
	First, End int          // its tasks, those of inner parts among them
	Outer      int          // the part around it; -1: it is the workflow
	Depth      int          // how many parts are around it
	Sub        *Subworkflow // nil: it is the workflow
	Items      []int        // directly in it, in the order of the tasks

	firsts, lasts int // how many of its tasks have no parent in it, and no child
}

// A PartError says why a workflow cannot be taken apart, with a task that shows it.
type PartError struct {
	Task   int
	Reason string
}

func (e *PartError) Error() string { return e.Reason }

func (p *Parts) refuse(i int, format string, args ...any) error {
	return &PartError{i, fmt.Sprintf(format, args...)}
}

// PartsOf takes a workflow apart, with deepest parts within each other at most. It fails with a *PartError if
// subworkflows share tasks without being within each other, or if the order of tasks is not one of items: whatever
// comes before a subworkflow has to come before all of its tasks that are first in it, and the like behind it. Before
// leaves out what is before a final task, which is behind all.
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

// split finds the parts, and the innermost one of each task.
func (p *Parts) split(deepest int) error {
	at := 0
	for _, s := range nested(p.wf) {
		for p.All[at].End <= s.First {
			at = p.All[at].Outer
		}
		switch around := &p.All[at]; {
		case s.End > around.End:
			return p.refuse(s.First, "subworkflows %q and %q, which share some of their tasks", around.Sub.Name, s.Name)
		case around.Depth == deepest-1:
			return p.refuse(s.First, "more than %d workflows within each other", deepest)
		}
		p.All = append(p.All, Part{First: s.First, End: s.End, Outer: at, Depth: p.All[at].Depth + 1, Sub: s})
		at = len(p.All) - 1
	}
	for k := range p.All {
		for i := p.All[k].First; i < p.All[k].End; i++ {
			p.In[i] = k
		}
	}
	return nil
}

// nested are the subworkflows that are no jobs, an inner one behind the one that it is in.
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

// itemize finds the items of a part.
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

// meet returns the innermost part that two tasks are in, and the items of it that they are or are in.
func (p *Parts) meet(i, j int) (x, y, in int) {
	x, y = i, j
	a, b := p.In[i], p.In[j]
	for a != b {
		if p.All[a].Depth >= p.All[b].Depth {
			x, a = ^a, p.All[a].Outer
		} else {
			y, b = ^b, p.All[b].Outer
		}
	}
	return x, y, a
}

// findEnds finds the first and the last tasks of all parts.
func (p *Parts) findEnds() {
	p.child, p.parent = make([]int, len(p.In)), make([]int, len(p.In))
	for i := range p.In {
		for _, before := range p.wf.Graph.Parents(i) {
			_, _, in := p.meet(before, i)
			depth := p.All[in].Depth + 1
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

// isLast reports whether a task of a part has no child in it, and isFirst whether it has no parent there.
func (p *Parts) isLast(i, k int) bool  { return p.child[i] <= p.All[k].Depth }
func (p *Parts) isFirst(i, k int) bool { return p.parent[i] <= p.All[k].Depth }

// connect finds the order of the items that are parts.
func (p *Parts) connect() error {
	edges := make(map[[2]int]int) // :: two items → the edges from tasks of the one to tasks of the other
	if err := p.eachAcross(func(before, i, x, y int) bool {
		edges[[2]int{x, y}]++
		return (x >= 0 || p.isLast(before, ^x)) && (y >= 0 || p.isFirst(i, ^y))
	}); err != nil {
		return err
	}
	return p.eachAcross(func(_, _, x, y int) bool {
		n := edges[[2]int{x, y}]
		edges[[2]int{x, y}] = 0 // seen
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

// eachAcross calls fits for each edge between items of which one is a part. It stops with an error if fits returns
// false.
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
			return p.refuse(i, "an order behind task %q that does not hold for all of subworkflow %q",
				p.wf.Tasks[before].ID, p.All[part].Sub.Name)
		}
	}
	return nil
}
