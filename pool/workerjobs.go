package pool

import (
	"slices"
	"time"
)

// startLocked starts what waits, in order, for as long as it fits.
func (w *worker) startLocked(now time.Time) {
	for len(w.waiting) > 0 && !w.leaving {
		k := w.waiting[0]
		if w.usedCPUs > 0 && (w.usedCPUs+k.job.CPUs > w.cfg.CPUs || w.usedMemory+k.job.MemoryMiB > w.cfg.MemoryMiB) {
			return
		}
		if w.cutAt.Sub(now) < k.job.Estimate() {
			w.handBackLocked([]*work{k}, "its worker has too little time left")
			continue
		}
		w.waiting = w.waiting[1:]
		k.running = true
		w.usedCPUs += k.job.CPUs
		w.usedMemory += k.job.MemoryMiB
		w.runner.Go(func() { w.runJob(k) })
	}
}

// runJob runs the tasks of a job, one after the other. A task that fails does not keep the next from
// running; the worker's leaving does, and then they go back.
func (w *worker) runJob(k *work) {
	for i := range k.job.Tasks {
		task := &k.job.Tasks[i]
		e := w.begin(k, task, i)
		if e == nil {
			w.finish(k, nil, false)
			return
		}
		result := e.run(func() bool { return w.mayPublish(k) })
		w.finish(k, &result, i == len(k.job.Tasks)-1)
	}
}

// begin makes the next task of k the one that runs; nil if the job must stop before it.
func (w *worker) begin(k *work, task *Task, i int) *execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.cancelled || w.leaving || i > 0 && time.Until(w.cutAt) < task.Estimate {
		return nil
	}
	k.now = w.exec.begin(&k.job, task)
	return k.now
}

// mayPublish reports whether the lease under which k began still lasts: the dispatcher waits for this
// worker.
func (w *worker) mayPublish(k *work) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !k.lapsed && time.Since(w.leaseFrom) < w.lease
}

// finish books a result; last says that the job is over with it. Without a result the job is over too,
// and the tasks that it still had were not started.
func (w *worker) finish(k *work, result *Result, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if result != nil {
		w.lastN++
		r := report{N: w.lastN, Result: *result}
		w.unacked[r.N] = &unacked{report: r}
		w.fresh = append(w.fresh, r)
	}
	if last || result == nil {
		w.overLocked(k)
	}
	switch {
	case result == nil:
		w.flushLocked()
		w.stoppedLocked(k.job.Key())
	case len(w.waiting) == 0 || len(w.fresh) >= resultsBatch:
		w.flushLocked()
	case !w.flushing:
		w.flushing = true
		time.AfterFunc(resultsDelay, w.flush)
	}
}

// stoppedLocked hands back what was left of a job. For as long as the dispatcher may lack one of the
// job's results it must be told again over a new connection, see attach: those results look as if the
// job went on. Without any, the job is simply not among those that are held.
func (w *worker) stoppedLocked(keys ...Key) {
	for _, u := range w.unacked {
		u.stopped = u.stopped || slices.Contains(keys, u.Key)
	}
	w.sendLocked(&message{Type: typeReturned, Keys: keys, Reason: "its worker stopped before its last task"})
}

// overLocked forgets a job and starts what waits for its place.
func (w *worker) overLocked(k *work) {
	delete(w.jobs, k.job.Key())
	w.usedCPUs -= k.job.CPUs
	w.usedMemory -= k.job.MemoryMiB
	w.startLocked(time.Now())
	w.quietLocked()
}

// quietLocked notes when the worker has nothing left.
func (w *worker) quietLocked() {
	if len(w.jobs) > 0 {
		return
	}
	w.idleSince = time.Now()
	if w.draining {
		w.rouse()
	}
}

func (w *worker) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushing = false
	w.flushLocked()
}
