package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Sighting holds the facts currently known about a job at its site.
type Sighting struct {
	Known     bool   // the site has a job with the tag
	ID        string // the site's own id
	Phase     Phase
	Exit      *int
	Killed    Killed
	Says      string // the batch system's own term for the end, such as TIMEOUT; empty: none
	StartedAt time.Time
	EndedAt   time.Time
	Report    *Report // left by the job itself when it ended; nil: none
	Stderr    string  // last line on stderr of a job that left no report
	Node      string  // the node on which the job began, if the batch system reports it
	Overdue   string  // why the job was cancelled after waiting in vain, if it was; see World.Overdue
	Hopeless  bool    // other jobs would also wait in vain

	// Missing is the time since which the site has not shown a job that counts; Visibility is the maximum time for
	// which the batch system's delay may be the cause.
	Missing    time.Time
	Visibility time.Duration
}

// A Phase is a job's progress according to the batch system.
type Phase string

const (
	Queued  Phase = "queued"
	Running Phase = "running"
	Ended   Phase = "ended"
)

// Killed identifies the cause if a job did not end by itself.
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
	Lost      []corral.LostHost // hosts that a pilot lost
}

// Events returns the moves that bring a live job to its observed state, in order, or no moves if nothing has changed.
// For a job in state NEW that the site does not show, it returns no moves unless the job's end was requested, because
// only Decide may repeat the submission.
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

// missing decides about a job that the site does not show. A batch system may show a job late, or temporarily not at
// all, so only an absence that lasts for Visibility counts. A job that was never accepted may simply not have arrived,
// and is left to Decide.
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

// hidden reports whether the batch system may still show a job that it has not shown since Missing.
func (s Sighting) hidden(now time.Time) bool { return now.Sub(s.Missing) < s.Visibility }

// queued returns an event only if the job has not been seen waiting before.
func queued(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	if j.State != corral.JobNew && j.State != corral.JobSubmitted {
		return nil
	}
	return []corral.JobEvent{{Move: corral.JobQueue, At: now, SiteJobID: s.ID}}
}

// started returns an event only if the job was not known to be running. A job that ended without a start time, such as
// a job that was cancelled in the queue, has not started.
func started(j corral.Job, s Sighting, now time.Time) []corral.JobEvent {
	if j.State == corral.JobRunning || s.StartedAt.IsZero() && s.Phase == Ended {
		return nil
	}
	return []corral.JobEvent{{Move: corral.JobStart, At: cmp.Or(s.StartedAt, now), SiteJobID: s.ID}}
}

// ending returns an event that describes how and when a job ended and, for a pilot, which nodes were at fault. A pilot
// that left a report has named these nodes itself. If a pilot could not even report why it failed, the node on which it
// began is blamed; the same applies if the batch system ended the pilot because a node failed, since a pilot survives
// the failure of its other nodes.
func ending(j corral.Job, s Sighting, now time.Time) corral.JobEvent {
	e := corral.JobEvent{Move: corral.JobEnd, At: cmp.Or(s.EndedAt, now), SiteJobID: s.ID, ExitStatus: s.Exit}
	e.Outcome, e.Transient, e.Reason = outcome(j, s)
	e.Gone = s.Killed != ByNode
	if j.Kind == corral.PilotJob {
		e.Lost = losses(s.blamed(e), now.Sub(e.At))
	}
	return e
}

// blamed returns the hosts at fault for the end of a pilot.
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

// lateMost is the maximum delay between the end of a pilot and the observation of that end for which corrald is assumed
// to have been running when the pilot ended.
const lateMost = 10 * time.Minute

// losses returns the hosts that a pilot lost. If the pilot ended while corrald was not running, as may happen on a
// laptop, the nodes are not blamed.
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

// outcome returns how a job ended. If a pilot left for its own reasons, its report is used. A pilot that was forced to
// leave only received a signal without a reason, so the batch system, as the sender, is the better source. Exit
// statuses are considered last, because the layers between the process and corrald change them (papers part 5.1, T2).
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

// ended returns the outcome of a job according to the batch system that ended it; the outcome is empty if the batch
// system did not report a cause. Only pilots are meant to last for their whole walltime.
func (s Sighting) ended(kind corral.JobKind) (o corral.Outcome, transient bool, reason string) {
	switch s.Killed {
	case ByWalltime:
		const reason = "the batch system ended it at its walltime"
		if kind == corral.PilotJob {
			return corral.OutcomeExpired, false, reason
		}
		return corral.OutcomeFailed, true, reason
	case ByNode:
		return corral.OutcomeLost, true, "one of its nodes failed"
	case ByMemory:
		return corral.OutcomeFailed, true, "the batch system ended it because it used more memory than it was given"
	case ByPreemption:
		return corral.OutcomePreempted, true, "the batch system ended it to make room"
	case BySite:
		return corral.OutcomePreempted, true, "the site ended it, because of a limit or on request"
	}
	return "", false, ""
}

// removed returns how a cancelled job ended. A job that waited in the site's queue for too long has failed, but another
// job may be luckier.
func (s Sighting) removed() (o corral.Outcome, transient bool, reason string) {
	if s.Overdue != "" {
		return corral.OutcomeFailed, !s.Hopeless, s.Overdue
	}
	return corral.OutcomeRemoved, false, "cancelled"
}

// noReport returns a reason for the end of a job that left no report: the known facts about the end, the most useful
// first.
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
