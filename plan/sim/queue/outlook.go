package queue

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/slot"
)

// An Outlook is the information from which jobs can be planned at an instant.
type Outlook struct {
	// Free is the profile of processors that neither running jobs, until their requested times, nor reservations
	// occupy; waiting jobs are ignored.
	Free *slot.Profile
	Jobs []Job // waiting jobs, in order of arrival
	q    *Queue
}

// Look returns the outlook of a queue, which is valid until the queue changes.
func Look(q *Queue) Outlook {
	o := Outlook{q: q}
	var planned []slot.Change
	for _, e := range q.waiting {
		o.Jobs = append(o.Jobs, e.Job)
		if e.start >= 0 {
			planned = append(planned, slot.Change{From: max(q.plan.now, e.start), To: max(q.plan.now, e.until()),
				Free: e.Processors})
		}
	}
	o.Free = q.plan.free.With(planned)
	return o
}

// Starts returns the start of each waiting job if all of them are planned from scratch on a profile, by the machine's
// policy and their requested times, and no others arrive. The start is negative for a job that can never start because
// of a reservation. Only plans that are made in this way at the same instant are comparable; starts that were planned
// earlier cannot be compared with them.
func (o Outlook) Starts(free *slot.Profile) []time.Duration {
	q := o.q
	starts := make([]time.Duration, len(q.waiting))
	if q.plan.Policy == Conservative && q.plan.MaxUserRun == 0 { // the first pass plans all
		p := plan{Machine: q.plan.Machine, now: q.plan.now, free: free.Clone()}
		b := newBounds(len(q.waiting))
		for i, e := range q.waiting {
			at, ok := b.fit(&p, e)
			if !ok {
				starts[i] = -1
				continue
			}
			p.free.Take(at, at+e.Requested, e.Processors)
			starts[i] = at
		}
		return starts
	}
	c := q.copied(func(e *entry) {
		e.Runtime = e.Requested
		if !e.running {
			e.start = -1
		}
	})
	c.background, c.arrived = nil, 0
	c.plan.free, c.plan.held = free.Clone(), map[int]int{}
	for _, x := range c.ends.Values() {
		if !x.entry.over {
			c.plan.held[x.entry.User]++
		}
	}
	waiting := slices.Clone(c.waiting)
	c.want(c.plan.now)
	c.Advance(Open, nil)
	for i, e := range waiting {
		if starts[i] = e.start; !e.running {
			starts[i] = -1
		}
	}
	return starts
}

// Claim is like Reserve, but the reservation takes precedence over waiting jobs: Claim fails only because of running
// jobs and other reservations. Waiting jobs are planned again around the reservation.
func (q *Queue) Claim(from, to time.Duration, processors int) bool {
	if from < q.plan.now || processors < 1 || to <= from || Look(q).Free.Least(from, to) < processors {
		return false
	}
	early := q.plan.early
	for _, e := range q.waiting {
		q.plan.release(e)
		e.start = -1
	}
	q.plan.early = early
	q.plan.free.Take(from, to, processors)
	if q.plan.Policy == Conservative {
		b := newBounds(len(q.waiting))
		for _, e := range q.waiting {
			q.plan.reserve(e, b)
		}
	}
	q.want(q.plan.now)
	return true
}

// Alone returns a copy of a queue without the future jobs of its background.
func Alone(q *Queue) *Queue {
	c := q.Clone()
	c.background, c.arrived = nil, 0
	return c
}
