package execution

import (
	"container/heap"
	"slices"
)

// An order lists the jobs and subworkflows that wait until the limit of their category allows another one. Each array
// with a limit is a separate category, so there may be very many. Categories in which nothing waits are not listed, and
// do not slow down a release.
type order struct {
	categories []int     // ascending
	agendas    []*agenda // :: index of category → its agenda; none is empty
}

// next returns the listed category after another one; ok is false if there is none.
func (o *order) next(category int) (int, bool) {
	at, found := slices.BinarySearch(o.categories, category)
	if found {
		at++
	}
	if at == len(o.categories) {
		return 0, false
	}
	return o.categories[at], true
}

// waits reports whether a job or subworkflow in a category waits.
func (o *order) waits(category int) bool {
	_, found := slices.BinarySearch(o.categories, category)
	return found
}

// add makes a job or subworkflow wait for its category.
func (o *order) add(category int, a agendum) {
	at, found := slices.BinarySearch(o.categories, category)
	if !found {
		o.categories = slices.Insert(o.categories, at, category)
		o.agendas = slices.Insert(o.agendas, at, &agenda{})
	}
	heap.Push(o.agendas[at], a)
}

// pop removes and returns the most urgent agendum of a category; there must be one.
func (o *order) pop(category int) agendum {
	at, _ := slices.BinarySearch(o.categories, category)
	a := heap.Pop(o.agendas[at]).(agendum)
	if len(*o.agendas[at]) == 0 {
		o.categories, o.agendas = slices.Delete(o.categories, at, at+1), slices.Delete(o.agendas, at, at+1)
	}
	return a
}

// nextOf returns the next tasks of a category that may be released, or nil if the category has reached its limit or
// nothing waits. It begins the subworkflows that come before these tasks.
func (x *Execution) nextOf(category int) []int32 {
	for x.order.waits(category) && !x.jobs.full(category) {
		a := x.order.pop(category)
		if a.tasks == nil {
			if s := x.plan.scope.scopeOfUnit(a.unit); x.scopes.at(s).state == StateReady {
				x.begin(s)
			}
			continue
		}
		if tasks := x.releasable(a.tasks); len(tasks) > 0 {
			return tasks
		}
	}
	return nil
}

// An agenda is a heap: the most urgent agendum comes first.
type agenda []agendum

// An agendum is a waiting unit, or tasks that are loose together.
type agendum struct {
	urgency
	unit  int32
	tasks []int32
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].compare(a[j].urgency) < 0 }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(agendum)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
