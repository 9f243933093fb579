package engine

import "time"

// Pace of a site's loop. A poll costs a process or a round trip at the site, so it happens often only
// while something is about to change.
const (
	pollSoon    = 50 * time.Millisecond // after an action, or when workers came or went
	pollBusy    = 200 * time.Millisecond
	pollSteady  = 2 * time.Second
	pollNothing = time.Minute     // nothing is to be polled; what happens ends the wait sooner
	busyFor     = 5 * time.Second // how long after a change the pace stays busy

	// A poll takes at most one of pollShare parts of the time: hundreds of jobs on a busy machine leave none to spare.
	pollShare = 4
)

// A pace says when a site's jobs are looked at. Whatever happens makes the loop busy for a while, since more is likely
// to follow: a job that was submitted starts, one that ended is followed by another.
type pace struct {
	busyUntil time.Time
	lastPoll  time.Time     // zero: the next step polls
	took      time.Duration // the last poll
}

// busy makes the loop poll soon, and then often for a while.
func (p *pace) busy(now time.Time) { p.busyUntil = now.Add(busyFor) }

// polled notes a poll, and how long it took.
func (p *pace) polled(now time.Time, took time.Duration) { p.lastPoll, p.took = now, took }

// lookAgain makes the next step poll: what it would decide about is known to have changed.
func (p *pace) lookAgain() { p.lastPoll = time.Time{} }

// next is when the jobs are to be looked at next.
func (p *pace) next() time.Time {
	every := pollSteady
	if p.lastPoll.Before(p.busyUntil) {
		every = pollBusy
	}
	return p.lastPoll.Add(max(every, pollShare*p.took))
}
