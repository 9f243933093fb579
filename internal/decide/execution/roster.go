package execution

import (
	"cmp"
	"slices"
	"time"
)

// A roster numbers the workers that the run met; 0 is none.
type roster struct {
	workers []worker
	index   map[string]int32
	cpus    int // most that were registered at once
}

func newRoster() *roster {
	return &roster{workers: []worker{{}}, index: map[string]int32{"": 0}}
}

// A worker is one that the run met.
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
func (r *roster) lostWork(jobs []*job, at Msec) (lost time.Duration, began []*job) {
	oldest := func(a, b *job) int { return cmp.Or(cmp.Compare(a.busyFrom, b.busyFrom), compareJobs(a, b)) }
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

// meet keeps how many cpus a worker has.
func (r *roster) meet(m *Meeting) { r.workers[r.number(m.Worker)].cpus = m.CPUs }

// heard records that a worker has reported the end of an attempt.
func (r *roster) heard(worker int32, at Msec) { r.workers[worker].ended = at }

// sawCPUs records how many cpus were registered at once.
func (r *roster) sawCPUs(n int) { r.cpus = max(r.cpus, n) }
