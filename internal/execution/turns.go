package execution

import "container/heap"

// park lets something wait for its category's turn.
func park(c *control, category int, a agendum) {
	if c.parked[category] == nil {
		c.parked[category] = &agenda{}
	}
	heap.Push(c.parked[category], a)
}

// turn returns the next tasks of a category that may be released: nil if it has as many jobs and subworkflows as it may
// have, or if none waits. Subworkflows whose turn it is are begun.
func turn(c *control, category int) []int32 {
	waiting := c.parked[category]
	for waiting != nil && len(*waiting) > 0 && c.book.used(category) < c.plan.Limits[category-1] {
		a := heap.Pop(waiting).(agendum)
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
