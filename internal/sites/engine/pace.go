package engine

// These constants determine when a site's jobs are polled. A poll costs a process or a round trip at the site, so it is
// frequent only while a change is imminent and becomes rarer the longer nothing has happened. The most important events
// do not wait for a poll: a pilot that starts connects, and one that ends disconnects, which ends the loop's rest (see
// rest).

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

const (
	pollSoon    = 50 * time.Millisecond // after an action, or when workers registered or left
	pollBusy    = 200 * time.Millisecond
	pollSteady  = 2 * time.Second // unless Config.Poll is set
	pollNothing = time.Minute     // nothing is expected, or there is nothing to poll; events end the wait sooner
	busyFor     = 5 * time.Second // how long after a change the pace stays busy

	// Polls take at most 1/pollShare of the time: hundreds of jobs on a busy machine could otherwise take all of it.
	pollShare = 4

	// Reading a site's records, including waiting for other sites' reads, takes at most 1/loadShare of the time: when
	// a thousand glideins are requested one by one, each would otherwise cause all of them to be read.
	loadShare = 5

	// If nothing is expected, the next poll follows after 1/quietShare of the time since the last change: the start of
	// a job that has waited for an hour is noticed within a minute at most.
	quietShare = 8
)

// A pace determines when a site's jobs are polled. Each event makes the loop busy for a while, because more events
// are likely to follow: a submitted job starts, an ended one is replaced.
type pace struct {
	steady   time.Duration // interval of polls while a change is expected; 0: pollSteady
	changed  time.Time     // time of the last event
	lastPoll time.Time     // zero: the next step polls
	took     time.Duration // duration of the last poll
	load     time.Duration // duration of the last read of the site's records
	expected expectation
}

// An expectation describes when the next change at a site is expected.
type expectation struct {
	soon bool      // at any moment
	at   time.Time // when it is due, if it is not soon; zero: unknown
}

// expect returns the time of the next changes of which corrald would not be notified: in jobs that were submitted or
// asked to end, in the site's own jobs, which have no link to corrald, and in attempts whose walltime is over. Attempts
// that wait in the queue, or that work, are not among them.
func expect(now time.Time, w reconcile.World) (e expectation) {
	for _, j := range w.Jobs {
		e.soon = e.soon || j.Live()
	}
	for _, g := range w.Glideins {
		for _, a := range g.Live() {
			end := a.StartedAt.Add(time.Duration(g.Walltime))
			switch {
			case a.State == corral.JobNew, a.State == corral.JobSubmitted,
				a.Asked != corral.AskNothing, g.Asked != corral.AskNothing,
				a.State == corral.JobQueued && a.LeaseHolder != "":
				e.soon = true
			case a.State != corral.JobRunning:
			case !end.After(now):
				e.soon = true
			case e.at.IsZero() || end.Before(e.at):
				e.at = end
			}
		}
	}
	return e
}

// busy makes the loop poll soon, and then often for a while.
func (p *pace) busy(now time.Time) { p.changed = now }

// polled records a poll and its duration. The first poll of a loop has no earlier change to refer to.
func (p *pace) polled(now time.Time, took time.Duration) {
	p.lastPoll, p.took = now, took
	if p.changed.IsZero() || p.changed.After(now) { // or after the clock was set back
		p.changed = now
	}
}

// lookAgain makes the next step poll, because the state to be decided on is known to have changed.
func (p *pace) lookAgain() { p.lastPoll = time.Time{} }

// next returns the time at which the jobs should be polled next.
func (p *pace) next() time.Time {
	steady := cmp.Or(p.steady, pollSteady)
	quiet := p.lastPoll.Sub(p.changed)
	every := min(max(steady, quiet/quietShare), max(steady, pollNothing))
	switch {
	case quiet < busyFor:
		every = max(pollBusy, steady*pollBusy/pollSteady)
	case p.expected.soon:
		every = steady
	}
	next := p.lastPoll.Add(max(every, pollShare*p.took))
	if at := p.expected.at; at.After(p.lastPoll) && at.Before(next) {
		return at
	}
	return next
}
