package queue

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/availability"
)

// A Queue is a machine with its jobs at an instant. Make one with New.
type Queue struct {
	plan       plan
	background []Job // in the order of submission; shared with clones
	arrived    int   // of them

	waiting []*entry // in the order of arrival
	ends    heap.Heap[ending]
	open    map[int]*entry // :: id of an open job that waits or runs
	last    int            // number of the job that started last
	running int

	pass    time.Duration // when the next one is
	pending bool          // one is due
}

// An ending is when a running job ends.
type ending struct {
	at     time.Duration
	number int
	entry  *entry
}

func (a ending) before(b ending) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// New returns a queue at instant 0, to which jobs of a background will come. They must be in the order of their
// submission, and must not change any more. Those that the machine refuses are left out.
func New(m Machine, background []Job) *Queue {
	return &Queue{plan: plan{Machine: m, held: map[int]int{}, free: availability.New(m.Processors, 0)},
		background: background, open: map[int]*entry{}, ends: heap.New(ending.before)}
}

// Now is the instant that was reached.
func (q *Queue) Now() time.Duration { return q.plan.now }

// Waiting returns how many jobs wait.
func (q *Queue) Waiting() int { return len(q.waiting) }

// Running returns how many jobs run.
func (q *Queue) Running() int { return q.running }

// Free returns a copy of the profile of free processors: what running jobs leave, until their requested times, and
// what reservations leave. With conservative backfilling each job that waits has one, so whatever fits delays nobody.
func (q *Queue) Free() *availability.Profile { return q.plan.free.Clone() }

// Reserve takes processors for a time in advance, as a maintenance or an advance reservation does, and reports whether
// so many are free then. Jobs are planned around it.
func (q *Queue) Reserve(from, to time.Duration, processors int) bool {
	if from < q.plan.now || processors < 1 || to <= from || q.plan.free.Least(from, to) < processors {
		return false
	}
	q.plan.free.Take(from, to, processors)
	return true
}

// Submit puts a job into the queue, now, and says why it is refused; empty: it is not.
func (q *Queue) Submit(j Job) (refused string) {
	if why := q.plan.Refuses(j); why != "" {
		return why
	}
	j.Submit = q.plan.now
	q.enter(j)
	return ""
}

// enter adds a job that is not refused.
func (q *Queue) enter(j Job) {
	e := &entry{Job: j, start: -1}
	if j.Runtime == Open {
		q.open[j.ID] = e
	}
	q.waiting = append(q.waiting, e)
	q.want(q.plan.now)
}

// Finish ends an open job, now: it leaves the queue, or frees its processors. Of one that has ended it does nothing.
func (q *Queue) Finish(id int) {
	e := q.open[id]
	switch {
	case e == nil:
	case e.running:
		q.leave(e)
	default:
		delete(q.open, id)
		q.waiting = slices.DeleteFunc(q.waiting, func(f *entry) bool { return f == e })
		q.plan.release(e)
		q.want(q.plan.now)
	}
}

// Next returns when something happens next of which the queue knows; ok is false if nothing does.
func (q *Queue) Next() (at time.Duration, ok bool) {
	at = Open
	if q.pending {
		at = q.pass
	}
	if q.ends.Len() > 0 {
		at = min(at, q.ends.First().at)
	}
	if q.arrived < len(q.background) {
		at = min(at, q.background[q.arrived].Submit)
	}
	return max(at, q.plan.now), at < Open
}

// Reach lets time pass until an instant, with all that happens before, and calls started, unless it is nil, for each
// job that starts. What is submitted or finished then is there for the passes of that instant.
func (q *Queue) Reach(to time.Duration, started func(j Job, at time.Duration)) {
	for at, ok := q.Next(); ok && at < to; at, ok = q.Next() {
		q.happen(at, started)
	}
	if to < Open {
		q.plan.now = max(q.plan.now, to)
	}
}

// Advance is Reach with all that happens at the instant, too.
func (q *Queue) Advance(to time.Duration, started func(j Job, at time.Duration)) {
	q.Reach(to, started)
	for at, ok := q.Next(); ok && at <= to; at, ok = q.Next() {
		q.happen(at, started)
	}
}

// happen has happen what does at an instant, once: what starts then may end then, too.
func (q *Queue) happen(at time.Duration, started func(j Job, at time.Duration)) {
	q.plan.now = at
	q.depart()
	q.arrive()
	if q.pending && q.pass <= at {
		q.schedule(started)
	}
}

// want has a pass made as soon as there may be one from an instant on.
func (q *Queue) want(at time.Duration) {
	if at = q.plan.next(at); !q.pending || at < q.pass {
		q.pending, q.pass = true, at
	}
}

// depart ends the jobs that end now.
func (q *Queue) depart() {
	for q.ends.Len() > 0 && q.ends.First().at <= q.plan.now {
		if e := q.ends.Pop().entry; !e.over {
			q.leave(e)
		}
	}
}

// arrive lets the jobs of the background come that are submitted by now.
func (q *Queue) arrive() {
	for ; q.arrived < len(q.background) && q.background[q.arrived].Submit <= q.plan.now; q.arrived++ {
		if j := q.background[q.arrived]; q.plan.Refuses(j) == "" {
			q.enter(j)
		}
	}
}

// leave frees the processors of a running job.
func (q *Queue) leave(e *entry) {
	e.over = true
	q.running--
	q.plan.release(e)
	if e.Runtime == Open {
		delete(q.open, e.ID)
	}
	q.want(q.plan.now)
}

// schedule makes a scheduling pass.
func (q *Queue) schedule(started func(j Job, at time.Duration)) {
	q.pending = false
	var next time.Duration
	q.waiting, next = q.plan.start(q.waiting, func(e *entry) {
		e.running = true
		q.running++
		q.last++
		q.ends.Push(ending{e.end(), q.last, e})
		if started != nil {
			started(e.Job, q.plan.now)
		}
	})
	if next < Open {
		q.want(next)
	}
}
