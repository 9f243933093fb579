package execution

import (
	"slices"
	"time"
)

// An attempt number is never reused, because it names a directory into which an attempt on a lost worker may still
// write.

// Back-off before a failed task is retried. The first retry is immediate, since most transient failures have passed by
// then. The second waits for backoffMin, doubled for each further failure, up to backoffMax.
const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

func backoff(failures int32) time.Duration {
	if failures <= 1 {
		return 0
	}
	return min(backoffMin<<min(failures-2, 16), backoffMax)
}

// current reports whether p is the current attempt of a task.
func (us *units) current(p Part) bool { return us.has(p.Task) && us.at(p.Task).attempt == p.Attempt }

// nextAttempt gives a task its next attempt number. The time used by its last attempt becomes lost time.
func (x *Execution) nextAttempt(i int32) {
	u := x.units.at(i)
	if u.charged {
		u.charged = false
		x.tally.hours.waste(x.stretch(i))
	}
	u.attempt = max(u.attempt, x.units.extra(i).floor) + 1
}

// unbegin takes back the number of the current attempt, which never began.
func (us *units) unbegin(i int32) { us.at(i).attempt-- }

// need returns what a job of these tasks requires of a worker: they run one after another. A task that was cut is
// known to need longer than its estimate.
func (us *units) need(tasks []int32) (n need) {
	for _, i := range tasks {
		n = n.and(need{us.plan.Tasks[i].Needs(), us.estimate(i)})
		n.of.MemoryMiB = max(n.of.MemoryMiB, us.memory(i))
	}
	return n
}

// estimate returns the expected runtime of a task: the workflow's estimate, or more if an attempt was cut after a
// longer time.
func (us *units) estimate(i int32) time.Duration {
	return max(us.plan.Tasks[i].Estimate, us.extra(i).longest)
}

// measure records how the current attempt at a task ended and the resources that it used. Its job had this limit of
// memory, see limit.
func (x *Execution) measure(o *Outcome, worker int32, limit int) {
	i := o.Task
	u := x.units.at(i)
	u.started, u.ended, u.cpu, u.rssKiB = o.Started, o.Ended, o.CPU, o.RSSKiB
	u.read, u.written = o.Read, o.Written
	u.exit, u.worker = int32(o.Exit), worker
	x.tally.travel(i, o.Way)
	x.units.attribute(i, o.Cause)
	switch {
	case o.Cause == OverMemory:
		x.tally.overMemory++
		x.units.exceed(o, limit)
	case o.Status == Done:
		x.units.suffice(o)
	}
	x.units.addChanged(i, o.Changed)
	if o.Started != 0 { // it ran
		x.tally.ran(x.span(i))
		x.tally.hours.use(x.stretch(i))
		u.charged = true
	}
}

// addChanged records the inputs that an attempt at a task changed.
func (us *units) addChanged(i int32, inputs []string) {
	for _, name := range inputs {
		if e := us.grant(i); !slices.Contains(e.changed, name) {
			e.changed = append(e.changed, name)
		}
	}
}

// span returns the period in which a task's last attempt that ended occupied its worker, including the transfers of its
// files.
func (x *Execution) span(i int32) (from, to Msec) {
	u, way := x.units.at(i), x.tally.ways[i]
	return u.started - way.In, u.ended + way.Out
}

// failAttempt counts a failure of a task, and reports whether another attempt follows, and after which wait. If none
// follows, the task has failed permanently.
func (x *Execution) failAttempt(v verdict) (again bool, wait time.Duration) {
	i := v.unit
	u := x.units.at(i)
	u.failures++
	x.units.explain(i, v.why)
	if v.forever || int(u.failures) > x.plan.Tasks[i].Retries {
		if v.unbegun {
			x.units.unbegin(i)
		}
		return false, 0
	}
	x.tally.retry(x.units.raised(i))
	if !v.unbegun {
		x.nextAttempt(i)
	}
	return true, backoff(u.failures)
}

// cut records that a worker had to kill a task when it left. Such a task is now known to need longer than it ran.
// Otherwise every later worker would also cut it. With the longer estimate, either a worker has enough time, or the run
// reports that none has.
func (x *Execution) cut(o *Outcome) {
	ran := o.ran()
	e := x.units.grant(o.Task)
	e.longest = max(e.longest, ran+ran/10)
	x.tally.lost += ran
	x.tryElsewhere(o.Task, o.Reason)
}

// tryElsewhere gives a task another attempt that does not count as a retry.
func (x *Execution) tryElsewhere(i int32, why string) {
	x.units.explain(i, why)
	x.tally.requeued++
	x.nextAttempt(i)
}

// renew restores all retries of a task that is over. A task that was cancelled before its attempt began keeps the
// number of that attempt.
func (x *Execution) renew(i int32) {
	x.units.at(i).failures = 0
	if x.neverBegan(i) {
		x.units.uncancel(i)
		return
	}
	x.units.uncancel(i)
	x.nextAttempt(i)
}

// neverBegan reports whether the current attempt at a task that is over never began because the task was cancelled
// first.
func (x *Execution) neverBegan(i int32) bool {
	c := x.units.extra(i).cancel
	return c.is && !c.begun
}

// uncancel removes the cancellation of a task, and its count of lost workers.
func (us *units) uncancel(i int32) {
	if us.extra(i) != &noExtra {
		e := us.grant(i)
		e.cancel, e.losses = cancel{}, 0
		us.tidy(i)
	}
}
