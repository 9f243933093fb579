package execution

import (
	"container/heap"
	"slices"
)

// A parked lists what waits for its category's turn. Each array with a limit is a category of its own, so that there
// may be very many: those of which nothing waits are not in the list, and cost a release nothing.
type parked struct {
	categories []int     // ascending
	agendas    []*agenda // of each of these; none is empty
}

// next returns the category behind another one; not ok if there is none.
func (p *parked) next(category int) (int, bool) {
	at, found := slices.BinarySearch(p.categories, category)
	if found {
		at++
	}
	if at == len(p.categories) {
		return 0, false
	}
	return p.categories[at], true
}

// of returns what waits of a category; nil: nothing does.
func (p *parked) of(category int) *agenda {
	if at, found := slices.BinarySearch(p.categories, category); found {
		return p.agendas[at]
	}
	return nil
}

// park lets something wait for its category's turn.
func park(c *control, category int, a agendum) {
	p := &c.parked
	at, found := slices.BinarySearch(p.categories, category)
	if !found {
		p.categories = slices.Insert(p.categories, at, category)
		p.agendas = slices.Insert(p.agendas, at, &agenda{})
	}
	heap.Push(p.agendas[at], a)
}

// pop takes out what is most urgent of a category, of which something waits.
func (p *parked) pop(category int) agendum {
	at, _ := slices.BinarySearch(p.categories, category)
	a := heap.Pop(p.agendas[at]).(agendum)
	if len(*p.agendas[at]) == 0 {
		p.categories, p.agendas = slices.Delete(p.categories, at, at+1), slices.Delete(p.agendas, at, at+1)
	}
	return a
}

// turn returns the next tasks of a category that may be released: nil if it has as many jobs and subworkflows as it may
// have, or if none waits. Subworkflows whose turn it is are begun.
func turn(c *control, category int) []int32 {
	for c.parked.of(category) != nil && c.book.used(category) < c.plan.Limits[category-1] {
		a := c.parked.pop(category)
		if a.tasks == nil {
			if s := a.unit - int32(len(c.plan.Tasks)) + 1; c.scopes[s].stage == stageQueued {
				c.begin(s)
			}
			continue
		}
		if tasks := free(c, a.tasks); len(tasks) > 0 {
			return tasks
		}
	}
	return nil
}

// An agenda is a heap: what is most urgent first.
type agenda []agendum

// An agendum is a unit that waits, or tasks that are loose together.
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
