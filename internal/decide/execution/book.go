package execution

import (
	"cmp"
	"slices"
	"time"
)

// A book lists the jobs that were released and are not over. A task is in at most one of them.
type book struct {
	plan    *plan
	entries map[int64]*entry // :: number of the job → entry
	of      []*entry         // :: task → the entry that it is in, or nil
	nextSeq int64
	running int // tasks in assigned jobs
	behind  int // of those, tasks that wait for one before them in their job

	inUse []int // :: category - 1 → jobs and subworkflows that its limit counts
}

// An entry is one job.
type entry struct {
	seq      int64
	need     need // when it was released
	tasks    []int32
	left     int32 // tasks that have not ended
	worker   int32 // 0: not assigned
	awaited  bool  // after a restart: until its worker comes back
	busyFrom Msec  // when it was assigned, or when the end of a task of it was reported last
}

// inOrder is the order of the jobs' release.
func inOrder(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }

// use counts what a category's limit counts; category 0 is none.
func (b *book) use(category, more int) {
	if category != 0 {
		b.inUse[category-1] += more
	}
}

func (b *book) used(category int) int { return b.inUse[category-1] }

// enter makes a job of tasks that are in no other.
func (b *book) enter(seq int64, n need, tasks []int32) *entry {
	e := &entry{seq: seq, need: n, tasks: tasks, left: int32(len(tasks))}
	b.entries[seq] = e
	b.use(b.plan.scope.rules(tasks[0]).Category, 1)
	for _, i := range tasks {
		b.of[i] = e
	}
	return e
}

// remaining returns the tasks that are still in a job.
func (b *book) remaining(e *entry) []int32 {
	if int(e.left) == len(e.tasks) {
		return e.tasks
	}
	tasks := make([]int32, 0, e.left)
	for _, i := range e.tasks {
		if b.of[i] == e {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// leave takes task i out of its job, if it is in one. It appends the job's number to over if that was the last of it.
func (b *book) leave(i int32, over []int64) []int64 {
	e := b.of[i]
	if e == nil {
		return over
	}
	b.of[i] = nil
	if e.worker != 0 {
		b.running--
	}
	if e.left--; e.left > 0 {
		return over
	}
	delete(b.entries, e.seq)
	b.use(b.plan.scope.rules(e.tasks[0]).Category, -1)
	return append(over, e.seq)
}

// A roster numbers the workers that the run met; 0 is none.
type roster struct {
	workers []worker
	index   map[string]int32
	cpus    int // most that were registered at once
}

// A worker is what is remembered of one.
type worker struct {
	name  string
	cpus  int  // 0: not known yet
	ended Msec // when it reported the end of an attempt last
}

// number returns the number of a worker, a new one for a name that was not met before.
func (r *roster) number(name string) int32 {
	n, ok := r.index[name]
	if !ok {
		n = int32(len(r.workers))
		r.workers = append(r.workers, worker{name: name})
		r.index[name] = n
	}
	return n
}

// lostWork estimates the work lost in jobs whose workers vanished: as many of each worker's as its cpus could
// run at once, oldest first, from when it last reported the end of a task until at. These it returns; the others had
// not been started.
func (r *roster) lostWork(jobs []*entry, at Msec) (lost time.Duration, began []*entry) {
	oldest := func(a, b *entry) int { return cmp.Or(cmp.Compare(a.busyFrom, b.busyFrom), inOrder(a, b)) }
	used := make(map[int32]int) // :: worker → cpus
	for _, e := range slices.SortedFunc(slices.Values(jobs), oldest) {
		w := &r.workers[e.worker]
		if used[e.worker] += e.need.of.CPUs; e.worker != 0 && used[e.worker] <= max(w.cpus, e.need.of.CPUs) {
			lost += max(0, at.sub(max(e.busyFrom, w.ended)))
			began = append(began, e)
		}
	}
	return lost, began
}
