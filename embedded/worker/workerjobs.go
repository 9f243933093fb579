package worker

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/execution"
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

// runJob runs the tasks of a job in its run's directory or, where that is not seen, in one of the worker's own.
func (w *worker) runJob(k *work) {
	if executor.Sees(&k.job) {
		w.runTasks(k, &k.job, func(_ *execution.Task, r execution.Result) execution.Result { return r })
	} else {
		w.carryJob(k)
	}
}

// runTasks runs the tasks of k, which are those of job, one after the other, in job's directory; settle is told of
// each result and may change it. A task that fails does not keep the next from running; the worker's leaving does,
// and then they go back.
func (w *worker) runTasks(k *work, job *execution.Job, settle func(*execution.Task, execution.Result) execution.Result) {
	for i := range job.Tasks {
		e := w.begin(k, job, i)
		if e == nil {
			w.finish(k, nil, false)
			return
		}
		result := settle(&job.Tasks[i], e.Run(func() bool { return w.mayPublish(k) }))
		w.finish(k, &result, i == len(job.Tasks)-1)
	}
}

// begin makes a task of k the one that runs; nil if the job must stop before it.
func (w *worker) begin(k *work, job *execution.Job, i int) *executor.Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.cancelled || w.leaving || i > 0 && time.Until(w.cutAt) < job.Tasks[i].Estimate {
		return nil
	}
	k.now = w.exec.Begin(job, &job.Tasks[i])
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
func (w *worker) finish(k *work, result *execution.Result, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if result != nil {
		w.lastN++
		r := wire.Report{N: w.lastN, Result: *result}
		w.unacked[r.N] = &unacked{Report: r}
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
func (w *worker) stoppedLocked(keys ...execution.Key) {
	for _, u := range w.unacked {
		u.stopped = u.stopped || slices.Contains(keys, u.Key)
	}
	w.sendLocked(&wire.Message{Type: wire.TypeReturned, Keys: keys, Reason: "its worker stopped before its last task"})
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
