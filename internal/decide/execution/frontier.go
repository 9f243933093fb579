package execution

import (
	"container/heap"
	"time"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A frontier says which tasks may be released: their parents are done, and the back-off after their last
// failure is over. Such tasks are loose. The tasks of a cluster become loose together, once none of them waits
// for a task outside it any more; a task that is tried again is loose alone.
//
// Each event costs at most a logarithm: what is loose now stands in a list, which the next release empties, and
// what waits for the end of a back-off in a heap.
type frontier struct {
	plan    *plan
	nodes   *dag.Frontier
	missing []int32   // :: cluster → its tasks that still wait for a parent outside it
	lacking int       // their sum
	outer   []int32   // :: task → so many such parents; nil: no task waits for one of its own cluster
	loose   [][]int32 // lists of tasks to be released together; a list may name tasks that have been released since
	waiting backoffs
	ends    map[int32]Msec // of tasks that wait there: when that is over; a list that names them does not release them
	latest  Msec           // no back-off ends later

	marked map[int32]bool // tasks that wait for others of their jobs, and are to end when their turn comes
	ripe   []int32        // those whose turn has come
}

// newFrontier begins with no task loose: see gather.
func newFrontier(p *plan) frontier {
	f := frontier{
		plan: p, nodes: dag.NewFrontier(p.scope.nodes), missing: make([]int32, len(p.start)-1), ends: map[int32]Msec{},
		marked: map[int32]bool{},
	}
	if p.inner {
		f.outer = make([]int32, len(p.Tasks))
	}
	return f
}

// gather counts what each cluster waits for and makes those that wait for nothing loose. It is for nodes that were just
// made; held says of a task whose parents are done that it waits all the same.
func (f *frontier) gather(held func(i int32) bool) {
	f.lacking = 0
	for c := range f.missing {
		f.missing[c] = 0
		for _, i := range f.plan.tasksOf(c) {
			if f.awaits(i) || held(i) {
				f.missing[c]++
				f.lacking++
			}
		}
		if f.missing[c] == 0 {
			f.addLoose(f.plan.tasksOf(c))
		}
	}
}

// awaits counts what task i waits for outside its cluster, and reports whether that is anything.
func (f *frontier) awaits(i int32) bool {
	waits := f.state(i) == dag.Waiting
	if f.outer == nil {
		return waits
	}
	f.outer[i] = 0
	for _, p := range f.plan.Graph.Parents(int(i)) {
		if waits && f.plan.clusterOf[p] != f.plan.clusterOf[i] && f.state(int32(p)) != dag.Done {
			f.outer[i]++
		}
	}
	return f.outer[i] > 0
}

// state is where the graph's frontier has task i; that a ready task runs is in the book.
func (f *frontier) state(i int32) dag.State { return f.nodes.State(int(i)) }

// finish says that task i is done where tasks wait for others of their clusters, and returns those that became ready by
// that.
func (f *frontier) finish(i int32) (ready []int) {
	ready = f.nodes.Finish(int(i))
	for _, r := range ready {
		if f.marked[int32(r)] {
			f.ripe = append(f.ripe, int32(r))
		}
	}
	for _, c := range f.plan.Graph.Children(int(i)) {
		if f.plan.clusterOf[c] != f.plan.clusterOf[i] && f.outer[c] > 0 {
			if f.outer[c]--; f.outer[c] == 0 {
				f.less(int32(c))
			}
		}
	}
	return ready
}

// less says that a task of a cluster waits for nothing outside it any more: with the last one the cluster becomes
// loose.
func (f *frontier) less(i int32) {
	c := f.plan.clusterOf[i]
	f.lacking--
	if f.missing[c]--; f.missing[c] == 0 {
		f.addLoose(f.plan.tasksOf(int(c)))
	}
}

// dropped says that a task which waited is skipped.
func (f *frontier) dropped(i int32) {
	if f.outer == nil {
		f.less(i)
	} else if f.outer[i] > 0 {
		f.outer[i] = 0
		f.less(i)
	}
}

// more says that a task which was over may run again, or waits again.
func (f *frontier) more(i int32, held bool) {
	if held || f.state(i) == dag.Waiting {
		f.missing[f.plan.clusterOf[i]]++
		f.lacking++
		return
	}
	f.addLoose([]int32{i})
}

// addLoose has tasks released together.
func (f *frontier) addLoose(tasks []int32) { f.loose = append(f.loose, tasks) }

// loosen makes what is left of the cluster of a task loose again: the task has become ready and is in no job, because
// one that it waits for ran in a job of its own.
func (f *frontier) loosen(i int) {
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

// due returns what is loose now and forgets it. A back-off that ends later than any that could begin now was
// begun before the clock was set back; it is over, too.
func (f *frontier) due(now Msec) [][]int32 {
	due := f.loose
	f.loose = nil // it was large if the workflow is large and begins just now
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

// A backoffEnd is when a failed task may be tried again.
type backoffEnd struct {
	task int32
	at   Msec
}

// backoffs is a heap: the back-off that ends first, first.
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
