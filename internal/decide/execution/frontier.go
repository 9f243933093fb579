package execution

import (
	"container/heap"
	"time"
)

// A frontier lists the tasks that may be released: their parents are done, and the back-off after their last failure is
// over. Such tasks are loose. The tasks of a cluster become loose together, once none of them waits for a task outside
// the cluster; a task that is retried is loose alone.
//
// Each event takes at most logarithmic time: loose tasks are in a list, which the next release empties, and tasks that
// back off are in a heap.
type frontier struct {
	plan    *plan
	units   *units
	missing []int32   // :: cluster → number of its tasks that wait for a task outside it
	outer   []int32   // :: task → number of unfinished parents outside its cluster; nil: no cluster has inner edges
	loose   [][]int32 // lists of tasks to release together; some of these tasks may have been released since
	waiting backoffs
	ends    map[int32]Msec // :: task → when its back-off is over; until then a list that names it does not release it
	latest  Msec           // no back-off ends later
}

// newFrontier returns a frontier without loose tasks: see gather.
func newFrontier(p *plan, us *units) *frontier {
	f := &frontier{plan: p, units: us, missing: make([]int32, len(p.start)-1), ends: map[int32]Msec{}}
	if p.inner {
		f.outer = make([]int32, len(p.Tasks))
	}
	return f
}

// restart rebuilds the list of loose tasks from the clusters that do not wait.
func (f *frontier) restart() {
	f.loose = nil
	f.gather()
}

// gather counts the waiting tasks of each cluster, and makes the clusters without any loose.
func (f *frontier) gather() {
	for c := range f.missing {
		f.missing[c] = 0
		for _, i := range f.plan.tasksOf(c) {
			if f.waits(i) {
				f.missing[c]++
			}
		}
		if f.missing[c] == 0 {
			f.addLoose(f.plan.tasksOf(c))
		}
	}
}

// waits reports whether a task waits for a task outside its cluster. It counts the parents there.
func (f *frontier) waits(i int32) bool {
	if f.outer == nil {
		return f.units.state(i) == StateWaiting
	}
	f.outer[i] = 0
	for _, p := range f.plan.Graph.Parents(int(i)) {
		outside := f.plan.clusterOf[p] != f.plan.clusterOf[i]
		if outside && f.units.at(i).blocked() && f.units.state(int32(p)) != StateDone {
			f.outer[i]++
		}
	}
	return f.outer[i] > 0
}

// unblock counts a task as done for its children in other clusters.
func (f *frontier) unblock(i int) {
	for _, c := range f.plan.Graph.Children(i) {
		if f.plan.clusterOf[c] != f.plan.clusterOf[i] && f.outer[c] > 0 {
			if f.outer[c]--; f.outer[c] == 0 {
				f.less(int32(c))
			}
		}
	}
}

// less counts a task that no longer waits for a task outside its cluster. With the last one, the cluster becomes loose.
func (f *frontier) less(i int32) {
	c := f.plan.clusterOf[i]
	if f.missing[c]--; f.missing[c] == 0 {
		f.addLoose(f.plan.tasksOf(int(c)))
	}
}

// more counts a task that waits for a task outside its cluster again.
func (f *frontier) more(i int32) { f.missing[f.plan.clusterOf[i]]++ }

// drop removes a waiting task that is over from the counts.
func (f *frontier) drop(i int32) {
	if f.outer == nil {
		f.less(i)
	} else if f.outer[i] > 0 {
		f.outer[i] = 0
		f.less(i)
	}
}

// addCluster adds a cluster that does not wait.
func (f *frontier) addCluster() { f.missing = append(f.missing, 0) }

// addLoose lists tasks to be released together.
func (f *frontier) addLoose(tasks []int32) { f.loose = append(f.loose, tasks) }

// addRest makes the rest of a task's cluster loose again: the task has become ready without a job, because a task that
// it waited for ran in another job.
func (f *frontier) addRest(i int32) {
	if c := f.plan.clusterOf[i]; f.missing[c] == 0 {
		f.addLoose(f.plan.tasksOf(int(c)))
	}
}

// again makes task i loose after a wait.
func (f *frontier) again(i int32, at Msec, wait time.Duration) {
	if wait == 0 {
		f.addLoose([]int32{i})
		return
	}
	end := at.add(wait)
	heap.Push(&f.waiting, backoffEnd{i, end})
	f.ends[i], f.latest = end, max(f.latest, end)
}

// backsOff reports whether a task waits for the end of a back-off.
func (f *frontier) backsOff(i int32) bool {
	_, waits := f.ends[i]
	return waits
}

// endBackoff removes the back-off of a task.
func (f *frontier) endBackoff(i int32) { delete(f.ends, i) }

// next returns when a task may be released next; ok is false if none is loose or backs off.
func (f *frontier) next() (at Msec, ok bool) {
	switch {
	case len(f.loose) > 0:
		return 0, true
	case len(f.waiting) > 0:
		return f.waiting[0].at, true
	}
	return 0, false
}

// due returns and removes the lists that are loose now. A back-off that ends later than any that could begin now began
// before the clock was set back; it is also over.
func (f *frontier) due(now Msec) [][]int32 {
	due := f.loose
	f.loose = nil // release its memory, which is large when a large workflow begins
	if f.latest > now.add(backoffMax) {
		for k, b := range f.waiting {
			if b.at > now.add(backoffMax) {
				f.waiting[k].at, f.ends[b.task] = now, now
			}
		}
		heap.Init(&f.waiting)
		f.latest = now.add(backoffMax)
	}
	for len(f.waiting) > 0 && f.waiting[0].at <= now {
		if b := heap.Pop(&f.waiting).(backoffEnd); b.at >= f.ends[b.task] {
			delete(f.ends, b.task)
			due = append(due, []int32{b.task})
		}
	}
	return due
}

// A backoffEnd is the time at which a failed task may be retried.
type backoffEnd struct {
	task int32
	at   Msec
}

// backoffs is a heap with the back-off that ends first on top.
type backoffs []backoffEnd

func (b backoffs) Len() int { return len(b) }
func (b backoffs) Less(i, j int) bool {
	return b[i].at < b[j].at || b[i].at == b[j].at && b[i].task < b[j].task
}
func (b backoffs) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *backoffs) Push(x any)   { *b = append(*b, x.(backoffEnd)) }
func (b *backoffs) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
