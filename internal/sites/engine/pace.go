package engine

// When a site's jobs are looked at. A poll costs a process or a round trip at the site, so it happens often only while
// something is about to change, and the longer nothing has happened the less often. What matters most does not wait for
// a poll: a pilot that begins dials in, and one that ends hangs up, which ends the loop's rest (see rest).

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

const (
	pollSoon    = 50 * time.Millisecond // after an action, or when workers came or went
	pollBusy    = 200 * time.Millisecond
	pollSteady  = 2 * time.Second // unless Config.Poll says something else
	pollNothing = time.Minute     // nothing is expected, or to be polled; what happens ends the wait sooner
	busyFor     = 5 * time.Second // how long after a change the pace stays busy

	// A poll takes at most one of pollShare parts of the time: hundreds of jobs on a busy machine leave none to spare.
	pollShare = 4

	// Reading what is recorded of a site, and waiting for other sites to have done so, takes at most one of loadShare
	// parts of the time: where a thousand glideins are asked for one by one, each would cost reading all of them.
	loadShare = 5

	// Where nothing is expected, the next poll comes after one of quietShare parts of the time for which nothing has
	// happened: what waits for an hour in a queue is seen to start at most some minutes late, and one minute at most.
	quietShare = 8
)

// A pace says when a site's jobs are looked at. Whatever happens makes the loop busy for a while, since more is likely
// to follow: a job that was submitted starts, one that ended is followed by another.
type pace struct {
	steady   time.Duration // between polls while something is expected; 0: pollSteady
	changed  time.Time     // when something happened last
	lastPoll time.Time     // zero: the next step polls
	took     time.Duration // the last poll
	load     time.Duration // reading what is recorded took so long last
	expected expectation
}

// An expectation is what is known of the next change at a site.
type expectation struct {
	soon bool      // it may come at any moment
	at   time.Time // when it is due, if it is not soon; zero: nobody knows
}

// expect returns what may change at the site without a word to corrald: a job that the batch system was handed or asked
// to end, one of the site's own, which have no link to corrald, and an attempt whose walltime is over. An attempt that
// waits in the queue, or works, is none of them.
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

// polled notes a poll, and how long it took. The first one of a loop knows of no earlier change.
func (p *pace) polled(now time.Time, took time.Duration) {
	p.lastPoll, p.took = now, took
	if p.changed.IsZero() || p.changed.After(now) { // or the clock was set back
		p.changed = now
	}
}

// lookAgain makes the next step poll: what it would decide about is known to have changed.
func (p *pace) lookAgain() { p.lastPoll = time.Time{} }

// next is when the jobs are to be looked at next.
func (p *pace) next() time.Time {
	steady := p.steady
	if steady == 0 {
		steady = pollSteady
	}
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
