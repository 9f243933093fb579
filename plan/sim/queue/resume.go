package queue

import "time"

// resume returns a queue from an observation at an instant: running jobs, each with its Start, and waiting jobs in the
// order in which they are served. Running jobs are assumed to run for their requested times; a job that should have
// ended ends at once. Waiting jobs that the machine refuses are dropped. ok is false if running jobs hold more
// processors than the machine has.
func resume(m Machine, now time.Duration, running []Held, waiting []Job) (q *Queue, ok bool) {
	q = New(m, nil)
	q.plan.now = now
	q.plan.free.Forget(now)
	for _, h := range running {
		e := &entry{Job: h.Job, start: h.Start, running: true}
		e.Runtime = e.Requested
		if q.plan.free.Free(now) < h.Processors {
			return nil, false
		}
		q.plan.held[e.User]++
		q.plan.free.Take(now, max(now, e.until()), e.Processors)
		q.running++
		q.last++
		q.ends.Push(ending{max(now, e.end()), q.last, e})
	}
	for _, j := range waiting {
		j.Submit = now
		if q.plan.Refuses(j) == "" {
			q.enter(j)
		}
	}
	q.Advance(now, nil)
	return q, true
}
