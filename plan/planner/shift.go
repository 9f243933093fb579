package planner

import (
	"cmp"
	"slices"
	"time"
)

// A timing holds the start of each task.
type timing []time.Duration

// last returns the end of the last task.
func (t *tasks) last(start timing) (last time.Duration) {
	for i, at := range start {
		last = max(last, at+t.takes(int32(i)))
	}
	return last
}

// mirrored returns a timing in reversed time, counted back from the given instant.
func (t *tasks) mirrored(start timing, from time.Duration) timing {
	back := make(timing, len(start))
	for i, at := range start {
		back[i] = from - at - t.takes(int32(i))
	}
	return back
}

// inTurn returns the tasks sorted by start, parents before children; tasks with no duration come first.
func (t *tasks) inTurn(start timing) []int32 {
	order, topological := slices.Clone(t.byPlace), make([]int32, len(start))
	for k, i := range t.work.Graph.Order() {
		topological[i] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(start[a], start[b]), cmp.Compare(start[a]+t.takes(a), start[b]+t.takes(b)),
			cmp.Compare(topological[a], topological[b]))
	})
	return order
}

// slots are places that run one task at a time, all from the same instant.
type slots struct {
	count int
	ready time.Duration
	hop   time.Duration // see plan.Cluster
}

// shift moves the tasks of a schedule to the left: in the order of their starts, each begins as soon as its parents
// have ended and a slot is free. Among the free slots it takes the one that became free last, so that the others remain
// available to tasks that can begin earlier. No task starts later than before: when a task is moved, fewer tasks than
// slots are running at its old start, because each task that was moved before it was also running then.
func (t *tasks) shift(start timing, s slots) timing {
	free := make([]time.Duration, s.count) // the times when slots become free, ascending
	for i := range free {
		free[i] = s.ready
	}
	moved := make(timing, len(start))
	for _, i := range t.inTurn(start) {
		from := s.ready
		for _, parent := range t.work.Graph.Parents(int(i)) {
			from = max(from, moved[parent]+t.takes(int32(parent)))
		}
		k, _ := slices.BinarySearch(free, from+1)
		k = max(0, k-1)
		moved[i] = max(from, free[k]) + s.hop
		end := moved[i] + t.takes(i)
		for ; k+1 < len(free) && free[k+1] < end; k++ {
			free[k] = free[k+1]
		}
		free[k] = end
	}
	return moved
}

// shorten moves the tasks of a schedule to the right as far as possible without making the schedule longer, then to the
// left, and repeats this until the schedule does not become shorter or is as short as wanted. This is the double
// justification of Valls, Ballestín and Quintanilla (Justification and RCPSP: a technique that pays, European Journal
// of Operational Research 165, 2005). back holds the tasks with all edges reversed. The result is never longer than the
// original schedule.
func (t *tasks) shorten(start timing, back *tasks, s slots, wanted time.Duration) timing {
	start = t.shift(start, s)
	for last := t.last(start); last > wanted; {
		right := back.shift(t.mirrored(start, last+s.hop), slots{s.count, 0, s.hop})
		start = t.shift(t.mirrored(right, last+s.hop), s)
		now := t.last(start)
		if now >= last {
			break
		}
		last = now
	}
	return start
}

// by returns the tasks with other priorities: in ascending order of key; ties keep their order.
func (t *tasks) by(key []time.Duration) *tasks {
	other := *t
	other.byPlace, other.place = slices.Clone(t.byPlace), make([]int32, len(t.place))
	slices.SortStableFunc(other.byPlace, func(a, b int32) int { return cmp.Compare(key[a], key[b]) })
	for k, i := range other.byPlace {
		other.place[i] = int32(k)
	}
	return &other
}
