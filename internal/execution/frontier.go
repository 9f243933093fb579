package execution

import (
	"container/heap"
	"time"

	"github.com/corral-pilot/corral/dag"
)

// A frontier says which tasks may be released: their parents are done, and the back-off after their last
// failure is over. Such tasks are loose. The tasks of a cluster become loose together, once none of them waits
// for a parent any more; a task that is tried again is loose alone.
//
// Each event costs at most a logarithm: what is loose now stands in a list, which the next release empties, and
// what waits for the end of a back-off in a heap.
type frontier struct {
	plan    *plan
	nodes   *dag.Frontier
	missing []int32   // :: cluster → its tasks that still wait for a parent
	loose   [][]int32 // lists of tasks to be released together; a list may name tasks that have been released since
	waiting backoffs
	ends    map[int32]Msec // of tasks that wait there: when that is over; a list that names them does not release them
	latest  Msec           // no back-off ends later
}

// newFrontier begins with the tasks that wait for no other.
func newFrontier(p *plan) frontier {
	f := frontier{
		plan: p, nodes: dag.NewFrontier(p.Graph), missing: make([]int32, len(p.start)-1), ends: map[int32]Msec{},
	}
	f.gather()
	return f
}

// gather counts what each cluster waits for and makes those that wait for nothing loose. It is for nodes that were just
// made.
func (f *frontier) gather() {
	for c := range f.missing {
		f.missing[c] = 0
		for _, i := range f.plan.tasksOf(c) {
			if f.state(i) == dag.Waiting {
				f.missing[c]++
			}
		}
		if f.missing[c] == 0 {
			f.loose = append(f.loose, f.plan.tasksOf(c))
		}
	}
}

// state is where the graph's frontier has task i; that a ready task runs is in the book.
func (f *frontier) state(i int32) dag.State { return f.nodes.State(int(i)) }

// finish says that task i is done, fail that it failed for good.
func (f *frontier) finish(i int32) { f.settle(f.nodes.Finish(int(i))) }
func (f *frontier) fail(i int32)   { f.settle(f.nodes.Fail(int(i))) }

// settle takes note that tasks which waited became ready or were skipped: a cluster becomes loose with the last
// task that it waited for.
func (f *frontier) settle(tasks []int) {
	for _, i := range tasks {
		c := f.plan.clusterOf[i]
		if f.missing[c]--; f.missing[c] == 0 {
			f.loose = append(f.loose, f.plan.tasksOf(int(c)))
		}
	}
}

// again makes task i loose after a wait.
func (f *frontier) again(i int32, at Msec, wait time.Duration) {
	if wait == 0 {
		f.loose = append(f.loose, []int32{i})
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

// resume starts again from what is done: tasks that failed, which it returns, and those skipped below them may run.
func (f *frontier) resume() (failed []int32) {
	var done []int
	for i := range f.plan.Tasks {
		switch f.nodes.State(i) {
		case dag.Done:
			done = append(done, i)
		case dag.Failed:
			failed = append(failed, int32(i))
		}
	}
	nodes, err := dag.ResumeFrontier(f.plan.Graph, done, nil)
	if err != nil {
		panic(err) // unreachable: done is what the frontier itself said
	}
	f.nodes = nodes
	f.gather()
	return failed
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
