package worker

import (
	"time"

	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// work is a job that the worker has. Its worker's lock guards all of it except job, which does not change.
type work struct {
	w         *worker
	job       execution.Job
	running   bool     // else it waits
	gpus      []string // that it alone uses while it runs
	vacated   bool     // what it ran on is another's; its last task's files are still on their way
	cancelled bool
	lapsed    bool              // the lease under which it began is over: it may not publish
	now       *executor.Attempt // of the task that runs
	load      *load             // its files, where they travel; nil: they do not, or not yet
	next      *work             // which its goroutine runs after it; nil: none
}

// needs is what the job takes of the machine.
func (k *work) needs() matching.Resources {
	return matching.Resources{Resources: k.job.Needs(), Time: k.job.Estimate()}
}

// startLocked starts what waits, in order, for as long as it fits. The dispatcher's slot of this worker does the same,
// so that the two agree on what runs, but for jobs whose files are still on their way back. A job for which the time no
// longer suffices goes back. The first that starts because another is over has the goroutine of that: to wake another
// thread for it takes longer than some tasks.
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

// stoppedLocked hands back what was left of jobs that were stopped half way: of their tasks those without a result have
// not been started.
func (w *worker) stoppedLocked(keys ...execution.Key) {
	w.results.stop(keys)
	w.line.send(&wire.Message{Type: wire.TypeReturned, Keys: keys, Reason: "its worker stopped before its last task"})
}

// endedLocked notes when the worker has no job left.
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

// run runs the tasks of the job in its run's directory or, where that is not seen, in one of the worker's own; and then
// those of the job that follows.
func (k *work) run() {
	for ; k != nil; k = k.next {
		if k.w.jobs.sight.sees(&k.job) {
			if k.load != nil { // it was not seen when its files were fetched ahead
				k.load.close()
			}
			k.each(&k.job, func(e *executor.Attempt, _ *execution.Task) execution.Result { return e.Run(k.mayPublish) })
		} else {
			k.carry()
		}
	}
}

// each does something with the tasks of k, which are those of job, one after the other, in job's directory, and books
// the results. A task that fails does not keep the next from running, unless the job says that they depend on each
// other: then the others go back, as they do if the worker leaves.
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

// begin makes a task of k the one that runs; nil if the job must stop before it.
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

// mayPublish reports whether the lease under which k began still lasts: the dispatcher waits for this worker.
func (k *work) mayPublish() bool {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	return !k.lapsed && k.w.lease.lasts(time.Now())
}

// finish books a result; last says that the job is over with it. Without a result the job is over too, and the tasks
// that it still had were not started. While there is more to run, results wait for others.
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

// stopLocked ends a job that runs: its task is killed, the carrying of its files is broken off, and no other task of it
// begins.
func (k *work) stopLocked(cause execution.Status, why string) {
	if k.now != nil {
		k.now.Stop(cause, why)
	}
	k.breakOffLocked()
}

// endLocked ends a job that runs as stopLocked does, but leaves its task the time to tidy up.
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
