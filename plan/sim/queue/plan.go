package queue

import (
	"time"

	"github.com/corral-pilot/corral/plan/availability"
)

// A plan is what is known of the future at an instant: which processors running jobs hold, each until its requested
// time, and which reservations hold, those of others and those of jobs that wait. It starts jobs by its policy.
type plan struct {
	Machine
	now   time.Duration
	free  *availability.Profile
	held  map[int]int // :: user → jobs that run or have a reservation
	early bool        // time that was held has come free since the last pass, because a job left early
}

// An entry is a job that waits or runs.
type entry struct {
	Job
	start   time.Duration // it runs since, or is planned for; negative: neither
	running bool
	over    bool
}

// until is when its processors are free again at the latest, as its requested time says.
func (e *entry) until() time.Duration { return e.start + e.Requested }

// end is when a running job ends, unless it is open and finished before.
func (e *entry) end() time.Duration { return e.start + min(e.Runtime, e.Requested) }

// hold plans a job for an instant.
func (p *plan) hold(e *entry, start time.Duration) {
	e.start = start
	p.held[e.User]++
	p.free.Take(e.start, e.until(), e.Processors)
}

// release gives back what is left of the time that a job holds, if it holds any.
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

// eligible reports whether a job's user has fewer jobs that run, or have a reservation, than may run.
func (p *plan) eligible(e *entry) bool { return p.MaxUserRun == 0 || p.held[e.User] < p.MaxUserRun }

// fits reports whether a job can run from now on for all its requested time.
func (p *plan) fits(e *entry) bool {
	return p.free.Free(p.now) >= e.Processors && p.free.Least(p.now, p.now+e.Requested) >= e.Processors
}

// fit is the earliest instant from now on at which a job fits and a pass may be.
func (p *plan) fit(e *entry) (at time.Duration, ok bool) {
	for at = p.now; ; {
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

// start makes a scheduling pass over the jobs that wait, in the order of their arrival: it calls run for each that
// starts, whose processors it holds by then, and returns the others, in the place of the former, and when the next of
// them would start as far as is planned.
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

// aggressive starts jobs in the order of arrival while they fit. The first that does not gets a reservation at the
// earliest instant at which it would (its shadow time), and of those behind it EASY starts what fits beside that
// (Mu'alem and Feitelson 2001, figure 1). The reservation is of this pass alone: the next one makes a new one, which
// is never later as long as the same job is the first.
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
			if at, ok := p.fit(e); ok {
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

// conservative gives each job that has none a reservation at the earliest instant at which it fits beside all others,
// in the order of arrival, and starts those whose time has come (Mu'alem and Feitelson 2001, §2.1).
func (p *plan) conservative(waiting []*entry, run func(e *entry)) (kept []*entry, next time.Duration) {
	if p.early {
		p.compress(waiting)
	}
	kept, next = waiting[:0], Open
	for _, e := range waiting {
		p.reserve(e)
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

// reserve gives a job a reservation, unless it has one, or its user has as many jobs as may run.
func (p *plan) reserve(e *entry) {
	if e.start >= 0 || !p.eligible(e) {
		return
	}
	if at, ok := p.fit(e); ok {
		p.hold(e, at)
	}
}

// compress moves reservations forward into time that came free, in the order of arrival, until none can be moved: a
// job that moves may make room for one that arrived before it. None is moved back.
func (p *plan) compress(waiting []*entry) {
	for moved := true; moved; {
		moved = false
		for _, e := range waiting {
			if e.start <= p.now {
				continue
			}
			p.free.Give(e.start, e.until(), e.Processors)
			if at, ok := p.fit(e); ok && at < e.start {
				e.start, moved = at, true
			}
			p.free.Take(e.start, e.until(), e.Processors)
		}
	}
}
