package worker

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// work is a job that the worker holds. The worker's lock guards all fields except job, which does not change.
type work struct {
	w         *worker
	job       execution.Job
	running   bool     // false: it waits
	gpus      []string // used exclusively while it runs
	vacated   bool     // its resources are released; its last task's files are still in transit
	cancelled bool
	lapsed    bool              // the lease under which it began has ended: it may not publish
	now       *executor.Attempt // of the running task
	load      *load             // its files, if they travel; nil: they do not, or not yet
	next      *work             // the job that its goroutine runs next; nil: none
}

// needs returns the resources that the job uses.
func (k *work) needs() matching.Resources {
	return matching.Resources{Resources: k.job.Needs(), Time: k.job.Estimate()}
}

// startLocked starts waiting jobs, in order, while they fit. The dispatcher's slot for this worker follows the same
// rule, so that both agree on the running jobs, except for jobs whose files are still being returned. A job for which
// the remaining time is too short is returned. If jobs are started because another job has ended, the first of them
// uses that job's goroutine: waking another thread takes longer than some tasks.
func (w *worker) startLocked(now time.Time, after *work) {
	for w.phase != leaving {
		k, verdict := w.jobs.next(now)
		switch verdict {
		case matching.Keep:
			w.jobs.fetchAheadLocked()
			return
		case matching.Return:
			w.handBackLocked([]*work{k}, "its worker has too little time left")
		case matching.Start:
			w.jobs.start()
			if after != nil && after.next == nil && after.load == nil {
				after.next = k
			} else {
				w.runners.Go(k.run)
			}
		}
	}
}

// stoppedLocked returns jobs that were stopped before their last task: tasks of these jobs that have no result were not
// started.
func (w *worker) stoppedLocked(keys ...execution.Key) {
	w.results.stop(keys)
	w.line.send(&wire.Message{Type: wire.TypeReturned, Keys: keys, Reason: "its worker stopped before its last task"})
}

// endedLocked records when the worker has no jobs left.
func (w *worker) endedLocked() {
	if len(w.jobs.all) > 0 {
		return
	}
	w.idle.since = time.Now()
	w.exec.Rest()
	if w.phase != taking {
		w.rouse()
	}
}

// run runs the tasks of the job in its run's directory or, if that is not visible, in a directory of the worker; then
// it runs the next job.
func (k *work) run() {
	for ; k != nil; k = k.next {
		if k.w.jobs.sight.sees(&k.job) {
			if k.load != nil { // it was invisible when its files were prefetched
				k.load.close()
			}
			k.each(&k.job, func(e *executor.Attempt, _ *execution.Task) execution.Result { return e.Run(k.mayPublish) })
		} else {
			k.carry()
		}
	}
}

// each calls do for the tasks of k, one after another, in job's directory, and records the results. A failed task does
// not prevent the next, unless the job's tasks depend on each other: then the remaining tasks are returned, as happens
// when the worker leaves.
func (k *work) each(job *execution.Job, do func(*executor.Attempt, *execution.Task) execution.Result) {
	for i := range job.Tasks {
		e := k.begin(job, i)
		if e == nil {
			k.finish(nil, false)
			return
		}
		result := do(e, &job.Tasks[i])
		last := i == len(job.Tasks)-1
		k.finish(&result, last)
		if job.Ordered && result.Status != execution.Done && !last {
			k.finish(nil, false)
			return
		}
	}
}

// begin makes a task of k the running task; it returns nil if the job must stop before that task.
func (k *work) begin(job *execution.Job, i int) *executor.Attempt {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.cancelled || k.w.phase == leaving || i > 0 && k.w.jobs.room.Late(time.Now(), job.Tasks[i].Estimate) {
		return nil
	}
	k.now = k.w.exec.Begin(job, &job.Tasks[i])
	k.now.LimitMemory(k.job.MemoryLimit(k.w.cfg.Resources))
	if len(k.w.cfg.Devices) > 0 {
		k.now.ShowGPUs(k.gpus)
	}
	return k.now
}

// mayPublish reports whether the lease under which k began still lasts; while it does, the dispatcher waits for this
// worker.
func (k *work) mayPublish() bool {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	return !k.lapsed && k.w.lease.lasts(time.Now())
}

// finish records a result; last reports that it ends the job. Without a result the job has also ended, and its
// remaining tasks were not started. While jobs are running, results are collected and sent together.
func (k *work) finish(result *execution.Result, last bool) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if result != nil {
		w.results.add(*result)
	}
	if last || result == nil {
		w.jobs.over(k)
		w.startLocked(time.Now(), k)
		w.endedLocked()
	}
	switch {
	case result == nil:
		w.flushLocked()
		w.stoppedLocked(k.job.Key())
	case matching.SendNow(len(w.jobs.waiting), len(w.results.fresh)):
		w.flushLocked()
	default:
		delay := matching.ResultDelay(k.job.Leaf && result.Status == execution.Done)
		if !w.results.delay(time.Now(), delay) {
			return
		}
		time.AfterFunc(delay, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results.due = time.Time{}
			w.flushLocked()
		})
	}
}

// stopLocked stops a running job: it kills the current task, aborts the transfer of files, and prevents further tasks.
func (k *work) stopLocked(cause execution.Status, why string) {
	if k.now != nil {
		k.now.Stop(cause, why)
	}
	k.breakOffLocked()
}

// endLocked stops a running job like stopLocked, but gives its task time to clean up.
func (k *work) endLocked(cause execution.Status, why string) {
	if k.now != nil {
		k.now.End(cause, why)
	}
	k.breakOffLocked()
}

func (k *work) breakOffLocked() {
	k.cancelled = true
	if k.load != nil {
		k.load.cancel()
	}
}
