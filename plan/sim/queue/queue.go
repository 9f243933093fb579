package queue

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Queue is the state of a machine and its jobs at an instant. Use New to create a Queue.
type Queue struct {
	plan       plan
	background []Job // sorted by submission; shared with clones
	arrived    int   // number of background jobs that have arrived

	waiting []*entry // in order of arrival
	ends    heap.Heap[ending]
	open    map[int]*entry // :: ID of a waiting or running open job
	last    int            // number of the last started job
	running int

	pass    time.Duration // time of the next pass
	pending bool          // a pass is scheduled
}

// An ending is the end of a running job.
type ending struct {
	at     time.Duration
	number int
	entry  *entry
}

func (a ending) before(b ending) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// New returns a queue at instant 0 with a background of future jobs, which must be sorted by submission and must not be
// modified later. Jobs that the machine refuses are dropped.
func New(m Machine, background []Job) *Queue {
	return &Queue{plan: plan{Machine: m, held: map[int]int{}, free: slot.NewProfile(m.Processors, 0)},
		background: background, open: map[int]*entry{}, ends: heap.New(ending.before)}
}

// Now returns the current instant.
func (q *Queue) Now() time.Duration { return q.plan.now }

// Waiting returns the number of waiting jobs.
func (q *Queue) Waiting() int { return len(q.waiting) }

// Running returns the number of running jobs.
func (q *Queue) Running() int { return q.running }

// Free returns a copy of the profile of free processors, which neither running jobs, until their requested times, nor
// reservations occupy. With conservative backfilling each waiting job has a reservation, so a job that fits delays no
// other.
func (q *Queue) Free() *slot.Profile { return q.plan.free.Clone() }

// Reserve reserves processors for a future period, as for maintenance or an advance reservation, and reports whether
// enough processors are free then; if not, nothing is reserved. Jobs are planned around the reservation.
func (q *Queue) Reserve(from, to time.Duration, processors int) bool {
	if from < q.plan.now || processors < 1 || to <= from || q.plan.free.Least(from, to) < processors {
		return false
	}
	q.plan.free.Take(from, to, processors)
	return true
}

// Submit adds a job to the queue now. It returns the reason if the job is refused, and "" if it is accepted.
func (q *Queue) Submit(j Job) (refused string) {
	if why := q.plan.Refuses(j); why != "" {
		return why
	}
	j.Submit = q.plan.now
	q.enter(j)
	return ""
}

// enter adds a job that the machine does not refuse.
func (q *Queue) enter(j Job) {
	e := &entry{Job: j, start: -1}
	if j.Runtime == Open {
		q.open[j.ID] = e
	}
	q.waiting = append(q.waiting, e)
	q.want(q.plan.now)
}

// Finish ends an open job now: a waiting job leaves the queue, a running job frees its processors. It does nothing if
// the job has ended.
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

// Next returns the time of the next known event; ok is false if no event is known.
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

// Reach advances the queue to an instant and handles all earlier events; it calls started, unless started is nil, for
// each job that starts. Jobs that are then submitted or finished precede the passes of that instant.
func (q *Queue) Reach(to time.Duration, started func(j Job, at time.Duration)) {
	for at, ok := q.Next(); ok && at < to; at, ok = q.Next() {
		q.happen(at, started)
	}
	if to < Open {
		q.plan.now = max(q.plan.now, to)
	}
}

// Advance is like Reach, but also handles the events of the instant itself.
func (q *Queue) Advance(to time.Duration, started func(j Job, at time.Duration)) {
	q.Reach(to, started)
	for at, ok := q.Next(); ok && at <= to; at, ok = q.Next() {
		q.happen(at, started)
	}
}

// happen handles the events of an instant once. It may have to be called again, because a job that starts at this
// instant may also end at it.
func (q *Queue) happen(at time.Duration, started func(j Job, at time.Duration)) {
	q.plan.now = at
	q.depart()
	q.arrive()
	if q.pending && q.pass <= at {
		q.schedule(started)
	}
}

// want schedules a pass at the first allowed instant from at on.
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

// arrive adds the jobs of the background whose submission time has been reached.
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
