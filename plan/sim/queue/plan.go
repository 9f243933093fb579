package queue

import (
	"time"

	"github.com/corral-pilot/corral/plan/slot"
)

// A plan represents the known future at an instant: the processors held by running jobs until their requested times, by
// advance reservations, and by reservations of waiting jobs. Its method start starts jobs according to the policy.
type plan struct {
	Machine
	now   time.Duration
	free  *slot.Profile
	held  map[int]int // :: user → number of the user's jobs that run or have a reservation
	early bool        // a job has left early since the last pass, and so freed time that it held
}

// An entry is a waiting or running job.
type entry struct {
	Job
	start   time.Duration // actual or planned start; negative: none
	running bool
	over    bool
}

// until returns the end of the job's requested time.
func (e *entry) until() time.Duration { return e.start + e.Requested }

// end returns when a running job ends, unless it is open and finished earlier.
func (e *entry) end() time.Duration { return e.start + min(e.Runtime, e.Requested) }

// hold plans the start of a job for an instant, and takes its processors.
func (p *plan) hold(e *entry, start time.Duration) {
	e.start = start
	p.held[e.User]++
	p.free.Take(e.start, e.until(), e.Processors)
}

// release frees the rest of the time that a job holds, if any.
func (p *plan) release(e *entry) {
	if e.start < 0 {
		return
	}
	p.early = p.early || p.now < e.until()
	p.free.Give(max(p.now, e.start), max(p.now, e.until()), e.Processors)
	if p.held[e.User]--; p.held[e.User] == 0 {
		delete(p.held, e.User)
	}
}

// eligible reports whether a job's user is below the limit of jobs that run or have a reservation.
func (p *plan) eligible(e *entry) bool { return p.MaxUserRun == 0 || p.held[e.User] < p.MaxUserRun }

// fits reports whether a job can run from now on for its whole requested time.
func (p *plan) fits(e *entry) bool {
	return p.free.Free(p.now) >= e.Processors && p.free.Least(p.now, p.now+e.Requested) >= e.Processors
}

// fit returns the earliest instant, not before from, at which a job fits and a pass may happen.
func (p *plan) fit(e *entry, from time.Duration) (at time.Duration, ok bool) {
	for at = from; ; {
		if at, ok = p.free.Fit(at, e.Requested, e.Processors); !ok {
			return 0, false
		}
		pass := p.next(at)
		if pass == at {
			return at, true
		}
		at = pass
	}
}

// start makes a scheduling pass over the waiting jobs in order of arrival. It calls run for each job that starts, after
// taking its processors. It returns the jobs that still wait, in the same slice, and the next planned start.
func (p *plan) start(waiting []*entry, run func(e *entry)) (kept []*entry, next time.Duration) {
	p.free.Forget(p.now)
	if p.Policy == Conservative {
		kept, next = p.conservative(waiting, run)
	} else {
		kept, next = p.aggressive(waiting, run)
	}
	clear(waiting[len(kept):])
	p.early = false
	return kept, next
}

// aggressive starts jobs in order of arrival while they fit. The first job that does not fit gets a reservation at the
// earliest possible instant (its shadow time), and EASY starts later jobs that fit alongside this reservation (Mu'alem
// and Feitelson 2001, figure 1). The reservation lasts for this pass only; the next pass makes a new one, which is
// never later as long as the same job is first.
func (p *plan) aggressive(waiting []*entry, run func(e *entry)) (kept []*entry, next time.Duration) {
	var head *entry
	kept = waiting[:0]
	for i, e := range waiting {
		if head != nil && (p.Policy == FCFS || p.free.Free(p.now) == 0) {
			kept = append(kept, waiting[i:]...)
			break
		}
		switch {
		case !p.eligible(e):
		case p.fits(e):
			p.hold(e, p.now)
			run(e)
			continue
		case head == nil:
			head = e
			if at, ok := p.fit(e, p.now); ok {
				p.hold(e, at)
			}
		}
		kept = append(kept, e)
	}
	if head == nil || head.start < 0 {
		return kept, Open
	}
	next = head.start
	p.release(head)
	head.start = -1
	return kept, next
}

// conservative reserves processors, in order of arrival, for each job without a reservation, at the earliest instant at
// which the job fits alongside all others, and starts the jobs whose reserved start is now (Mu'alem and Feitelson 2001,
// §2.1).
func (p *plan) conservative(waiting []*entry, run func(e *entry)) (kept []*entry, next time.Duration) {
	if p.early {
		p.compress(waiting)
	}
	kept, next = waiting[:0], Open
	b := newBounds(len(waiting))
	for _, e := range waiting {
		p.reserve(e, b)
		if e.start == p.now {
			run(e)
			continue
		}
		if e.start > p.now {
			next = min(next, e.start)
		}
		kept = append(kept, e)
	}
	return kept, next
}

// reserve makes a reservation for a job, unless the job has one already, or its user has reached the limit. The bounds
// are those of all reservations since processors were last given back.
func (p *plan) reserve(e *entry, b *bounds) {
	if e.start >= 0 || !p.eligible(e) {
		return
	}
	if at, ok := b.fit(p, e); ok {
		p.hold(e, at)
	}
}

// compress moves reservations to earlier times that have been freed, in order of arrival, until none can be moved: a
// job that moves may make room for a job that arrived earlier. No reservation is moved to a later time.
func (p *plan) compress(waiting []*entry) {
	for moved := true; moved; {
		moved = false
		for _, e := range waiting {
			if e.start <= p.now {
				continue
			}
			p.free.Give(e.start, e.until(), e.Processors)
			if at, ok := p.fit(e, p.now); ok && at < e.start {
				e.start, moved = at, true
			}
			p.free.Take(e.start, e.until(), e.Processors)
		}
	}
}
