package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Sighting is what is known of a job at its site right now.
type Sighting struct {
	Known     bool   // the site knows the tag
	ID        string // the site's own id
	Phase     Phase
	Exit      *int
	Killed    Killed
	Says      string // the batch system's own word for the end: TIMEOUT, say; empty: it has none
	StartedAt time.Time
	EndedAt   time.Time
	Report    *Report // what the job itself left behind, once it has ended
	Stderr    string  // its last line on stderr, where it left no report
	Node      string  // on which it began, if the batch system says so
	Overdue   string  // why it was cancelled, if that was for having waited in vain; see World.Overdue
	Hopeless  bool    // so would others

	// Missing is since when the site has shown nothing of the job that counts; Visibility is for how long
	// that may be the batch system's delay and not the truth.
	Missing    time.Time
	Visibility time.Duration
}

// A Phase is how far the batch system says a job is.
type Phase string

const (
	Queued  Phase = "queued"
	Running Phase = "running"
	Ended   Phase = "ended"
)

// Killed says who ended a job that did not end itself.
type Killed string

const (
	ByWalltime    Killed = "walltime"
	ByCancel      Killed = "cancel"
	ByDisappeared Killed = "disappeared"
	ByPreemption  Killed = "preempted"
	ByNode        Killed = "node"
	ByMemory      Killed = "memory"
	BySite        Killed = "site"
)

// A Report is a job's own account of its end.
type Report struct {
	Outcome   corral.Outcome
	Transient bool
	Reason    string
	Lost      []corral.LostHost // of a pilot
}

// Events returns the moves that bring a live job to what was seen of it, in order; none if nothing is
// new. A job in state NEW that the site does not know gets none, unless it was asked to go: only Decide
// may repeat it.
func Events(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	switch {
	case !j.Live():
		return nil
	case !s.Known:
		return missing(j, s, now)
	case s.otherWorks() && s.hidden(now):
		return nil
	case s.Phase == Queued:
		return queued(j, s, now)
	case s.Phase == Running:
		return started(j, s, now)
	}
	return append(started(j, s, now), ending(j, s, now))
}

// missing says what becomes of a job that the site does not know. A batch system may show a job late, or be asked at a
// moment when it has forgotten; so only an absence that lasts for Visibility counts. One that was never accepted may
// simply not have arrived, and is left to Decide.
func missing(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	cancelled := j.Asked == corral.AskCancel
	if j.State == corral.JobNew && !cancelled || s.Missing.IsZero() || s.hidden(now) {
		return nil
	}
	if cancelled {
		e := corral.JobEvent{Move: corral.JobEnd, At: now}
		e.Outcome, e.Transient, e.Reason = s.removed()
		e.Reason += "; the site does not know it"
		return []corral.JobEvent{e}
	}
	return []corral.JobEvent{{
		Move:      corral.JobEnd,
		At:        now,
		Outcome:   corral.OutcomeLost,
		Transient: true,
		Reason:    fmt.Sprintf("the site has not known it for %s", now.Sub(s.Missing).Round(time.Second)),
	}}
}

// hidden reports whether the batch system may yet show what it has not shown since Missing.
func (s Sighting) hidden(now time.Time) bool { return now.Sub(s.Missing) < s.Visibility }

// queued is news of a job only until it has been seen waiting.
func queued(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	if j.State != corral.JobNew && j.State != corral.JobSubmitted {
		return nil
	}
	return []corral.JobEvent{{Move: corral.JobQueue, At: now, SiteJobID: s.ID}}
}

// started is news of a job that was not known to run. One that has ended without a time of its start, as a job that was
// cancelled in the queue, has not started.
func started(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	if j.State == corral.JobRunning || s.StartedAt.IsZero() && s.Phase == Ended {
		return nil
	}
	return []corral.JobEvent{{Move: corral.JobStart, At: cmp.Or(s.StartedAt, now), SiteJobID: s.ID}}
}

// ending says how and when a job ended, and for a pilot which nodes were at fault. A pilot that left a report has named
// them itself. One that could not even say why it failed blames the node on which it began, and so does one that its
// batch system ended because a node failed: a pilot outlives the other nodes.
func ending(j corral.Job, s Sighting, now time.Time) corral.JobEvent {
	e := corral.JobEvent{Move: corral.JobEnd, At: cmp.Or(s.EndedAt, now), SiteJobID: s.ID, ExitStatus: s.Exit}
	e.Outcome, e.Transient, e.Reason = outcome(j, s)
	e.Gone = s.Killed != ByNode
	if j.Kind == corral.PilotJob {
		e.Lost = losses(s.blamed(e), now.Sub(e.At))
	}
	return e
}

// blamed lists the hosts at fault for the end of a pilot.
func (s Sighting) blamed(e corral.JobEvent) (lost []corral.LostHost) {
	if s.Report != nil {
		lost = s.Report.Lost
	}
	began := corral.LostHost{Node: s.Node, Why: e.Reason}
	switch {
	case s.Node == "", s.Killed == ByMemory:
	case s.Killed == ByNode && e.Outcome == corral.OutcomeLost:
		return append(slices.Clone(lost), began)
	case s.Report == nil && (e.Outcome == corral.OutcomeFailed || s.Killed == ByDisappeared):
		return []corral.LostHost{began}
	}
	return lost
}

// lateMost is how much later than it happened the end of a pilot may be seen, for corrald to have been there for it.
const lateMost = 10 * time.Minute

// losses are the hosts that a pilot lost. Of one that ended while corrald was away, as one that runs on a laptop
// may be, it is not said that it was for the nodes.
func losses(lost []corral.LostHost, late time.Duration) []corral.LostHost {
	if late <= lateMost {
		return lost
	}
	lost = slices.Clone(lost)
	for i := range lost {
		lost[i].Node = ""
	}
	return lost
}

// outcome says how a job ended. A pilot that left for reasons of its own has said which, and is believed. One that was
// made to leave saw a signal and no reason: the batch system, which sent it, knows better. Exit statuses come last:
// what lies between a process and us changes them (papers part 5.1, T2).
func outcome(j corral.Job, s Sighting) (o corral.Outcome, transient bool, reason string) {
	own := s.Report
	switch {
	case own != nil && own.Outcome != corral.OutcomePreempted:
		return own.Outcome, own.Transient, own.Reason
	case s.Killed == ByCancel || j.Asked == corral.AskCancel:
		return s.removed()
	}
	if o, transient, reason = s.ended(j.Kind); o != "" {
		if s.Says != "" {
			reason += " (" + s.Says + ")"
		}
		return o, transient, reason
	}
	switch {
	case own != nil:
		return own.Outcome, own.Transient, own.Reason
	case s.Killed == ByDisappeared:
		return corral.OutcomeLost, true, "its processes disappeared"
	}
	return corral.OutcomeFailed, true, noReport(s)
}

// ended is the batch system's own word on a job that it ended; without an outcome it has none. Only a pilot is meant to
// last for its walltime.
func (s Sighting) ended(kind corral.JobKind) (o corral.Outcome, transient bool, reason string) {
	switch s.Killed {
	case ByWalltime:
		const reason = "the batch system ended it at its walltime"
		if kind == corral.PilotJob {
			return corral.OutcomeExpired, false, reason
		}
		return corral.OutcomeFailed, true, reason
	case ByNode:
		return corral.OutcomeLost, true, "a node of it failed"
	case ByMemory:
		return corral.OutcomeFailed, true, "the batch system ended it because it used more memory than it was given"
	case ByPreemption:
		return corral.OutcomePreempted, true, "the batch system ended it to make room"
	case BySite:
		return corral.OutcomePreempted, true, "the site ended it, for a limit or because somebody asked it to"
	}
	return "", false, ""
}

// removed says how a job ended that was cancelled. One that the site's queue kept for too long has failed:
// another may be luckier.
func (s Sighting) removed() (o corral.Outcome, transient bool, reason string) {
	if s.Overdue != "" {
		return corral.OutcomeFailed, !s.Hopeless, s.Overdue
	}
	return corral.OutcomeRemoved, false, "cancelled"
}

// noReport is the reason of a job that left no report of its own: what is known of its end, in the order of its worth.
func noReport(s Sighting) string {
	reason := "it left no report"
	if s.Exit != nil {
		reason = fmt.Sprintf("it ended with exit status %d and left no report", *s.Exit)
	}
	if line := strings.TrimSpace(s.Stderr); line != "" {
		reason += "; its last word: " + line
	}
	return reason
}
