package execution

import (
	"cmp"
	"slices"
	"time"
)

// A roster numbers the workers that the run has met; 0 means none.
type roster struct {
	workers []worker
	index   map[string]int32
	cpus    int // maximum registered at once
}

func newRoster() *roster {
	return &roster{workers: []worker{{}}, index: map[string]int32{"": 0}}
}

// A worker is a worker that the run has met.
type worker struct {
	name  string
	cpus  int  // 0: not yet known
	ended Msec // when it last reported the end of an attempt
}

// number returns the number of a worker; a new name gets a new number.
func (r *roster) number(name string) int32 {
	n, ok := r.index[name]
	if !ok {
		n = int32(len(r.workers))
		r.workers = append(r.workers, worker{name: name})
		r.index[name] = n
	}
	return n
}

// lostWork estimates the work lost in jobs whose workers vanished. It assumes that each worker ran as many of its jobs,
// oldest first, as its cpus allow, from its last report of the end of a task until at. It returns these jobs; the
// others are assumed not to have started.
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

// meet records the number of a worker's cpus.
func (r *roster) meet(m *Meeting) { r.workers[r.number(m.Worker)].cpus = m.CPUs }

// heard records that a worker has reported the end of an attempt.
func (r *roster) heard(worker int32, at Msec) { r.workers[worker].ended = at }

// sawCPUs records the number of cpus registered at once.
func (r *roster) sawCPUs(n int) { r.cpus = max(r.cpus, n) }
