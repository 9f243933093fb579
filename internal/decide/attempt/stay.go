package attempt

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Phase is a pilot's progress towards its departure.
type Phase int

const (
	Staying  Phase = iota // workers are started when they become due
	Draining              // workers finish their tasks
	Leaving               // workers leave at once, and are killed at KillAt
)

// A Stay determines how long a pilot may stay and how its stay ends. The first reason to drain is kept, and so is the
// first reason to leave at once. Later reasons are ignored, so that the report names the original cause of the end.
type Stay struct {
	Started time.Time
	End     time.Time // deadline for the workers' departure
	RouteBy time.Time // deadline for corrald's first answer
	idle    time.Time // the pilot does not leave for lack of work before this time
	reserve time.Duration

	report jobfiles.Report // has no outcome while the pilot stays
	killAt time.Time       // zero while the pilot stays or drains
}

// NewStay returns the stay of the pilot of an order. The stay ends early enough for the pilot to leave in an orderly
// way, so that the batch system never has to end the pilot.
func NewStay(started time.Time, p jobfiles.PilotOrder) *Stay {
	walltime := time.Duration(p.Walltime)
	reserve := jobfiles.Reserve(walltime)
	return &Stay{
		Started: started,
		End:     started.Add(walltime - reserve),
		RouteBy: started.Add(min(routeWait, walltime/2)),
		idle:    started.Add(time.Duration(p.MinStay)),
		reserve: reserve,
	}
}

// IdleFrom returns the earliest time at which the pilot may leave for lack of work.
func (s *Stay) IdleFrom() time.Time { return s.idle }

// Phase returns the current phase of the departure.
func (s *Stay) Phase() Phase {
	switch {
	case s.report.Outcome == "":
		return Staying
	case s.killAt.IsZero():
		return Draining
	}
	return Leaving
}

// Drain decides to leave once the running tasks have finished.
func (s *Stay) Drain(o corral.Outcome, reason string) {
	if s.Phase() == Staying {
		s.report.Outcome, s.report.Reason = o, reason
	}
}

// lateNotice is the divisor that determines the last part of a pilot's time: in this part a notice only means that the
// time is over.
const lateNotice = 10

// Notice handles a signal by which the batch system announces that it will reclaim the nodes: running tasks may finish,
// and no new task begins. Batch systems may also be configured to send such signals before the walltime is over. A
// pilot that has used all but a tenth of its time counts as expired, and another pilot may follow without using up a
// retry.
func (s *Stay) Notice(now time.Time, signal string) {
	if s.End.Sub(now) <= s.End.Sub(s.Started)/lateNotice {
		s.Drain(corral.OutcomeExpired, "the batch system gave notice ("+signal+") near the end of the walltime")
		return
	}
	s.Drain(corral.OutcomePreempted, "the batch system gave notice ("+signal+") that it takes the nodes back")
}

// Leave decides to leave at once. A pilot that was draining when its time ended keeps its outcome, because it has done
// what was requested; its reason mentions the interrupted tasks. At the end of its time a pilot may use half of the
// reserve to leave, which may be longer than Grace.
func (s *Stay) Leave(now time.Time, o corral.Outcome, reason string) {
	if s.Phase() == Leaving {
		return
	}
	drained := s.Phase() == Draining
	s.killAt = now.Add(Grace)
	if o == corral.OutcomeExpired {
		s.killAt = now.Add(s.reserve / 2)
		if drained {
			s.report.Reason += "; what still ran was cut at the end of the walltime"
			return
		}
	}
	s.report.Outcome, s.report.Reason = o, reason
}

// Fail decides to leave at once because the pilot cannot do its work. transient means that another attempt may succeed.
func (s *Stay) Fail(now time.Time, transient bool, reason string) {
	if s.Phase() != Leaving {
		s.Leave(now, corral.OutcomeFailed, reason)
		s.report.Transient = transient
	}
}

// FailHere is like Fail, for a reason that may be specific to this node. The node counts as lost.
func (s *Stay) FailHere(now time.Time, r *Roster, why string) {
	if s.Phase() != Leaving {
		s.Fail(now, true, why)
		s.report = Unfit(r.here, why)
		r.Lost = s.report.Lost
	}
}

// Unfit returns the report that a node cannot run a pilot, although another node may be able to.
func Unfit(node, why string) jobfiles.Report {
	lost := corral.LostHost{Node: node, Why: why}
	return jobfiles.Report{
		Outcome: corral.OutcomeFailed, Transient: true, Reason: lost.String(), Lost: []corral.LostHost{lost},
	}
}

// A Sight holds a supervisor's observations of its surroundings.
type Sight struct {
	DirGone    bool     // the job's directory was removed
	ParentGone bool     // the batch system's process that started the supervisor has ended
	Unreached  []string // corrald's addresses, while none of them has answered and the workers need corrald
}

// Consider checks for a reason to leave.
func (s *Stay) Consider(now time.Time, see Sight, r *Roster) {
	if s.Phase() == Leaving {
		return
	}
	switch {
	case see.DirGone:
		s.Leave(now, corral.OutcomePreempted, "the job's directory is gone")
	case see.ParentGone:
		s.Leave(now, corral.OutcomePreempted, "the process that started the pilot is gone")
	case len(see.Unreached) > 0 && now.After(s.RouteBy):
		s.FailHere(now, r, "no route to corrald at "+strings.Join(see.Unreached, ", "))
	case !now.Before(s.End):
		s.Leave(now, corral.OutcomeExpired, "the walltime is over")
	case s.Phase() == Draining:
	case r.allLeft():
		s.conclude(now, r)
	case !now.Before(s.idle) && r.idle(now):
		s.Drain(corral.OutcomeIdle, "no task for "+r.limit.String())
	}
}

// departures maps the reasons why workers leave of their own accord to the pilot's reports.
var departures = map[Left]jobfiles.Report{
	LeftExpired:    {Outcome: corral.OutcomeExpired, Reason: "the walltime is over"},
	LeftDrained:    {Outcome: corral.OutcomeDrained, Reason: "asked to drain"},
	LeftAsked:      {Outcome: corral.OutcomeRemoved, Reason: "asked to leave"},
	LeftTerminated: {Outcome: corral.OutcomePreempted, Reason: "a signal ended the workers"},
}

// conclude decides to leave because every worker has left. Failed workers determine the pilot's outcome only if all
// of them failed.
func (s *Stay) conclude(now time.Time, r *Roster) {
	last := r.Workers[0]
	for _, w := range r.Workers {
		if w.trouble == "" {
			last = w
		}
	}
	if last.trouble != "" {
		s.Fail(now, last.left != LeftRefused, "every worker failed: "+last.trouble)
		return
	}
	if why, ok := departures[last.left]; ok {
		s.Leave(now, why.Outcome, why.Reason)
		return
	}
	s.Fail(now, true, "every worker left without a known reason: "+string(last.left))
}

// KillDue reports whether the remaining workers should be killed.
func (s *Stay) KillDue(now time.Time) bool { return s.Phase() == Leaving && now.After(s.killAt) }

// Over reports whether the pilot is leaving and can exit. empty means that neither a worker process nor any process
// started by a worker is left. Processes that cannot be killed delay the pilot by at most SweepTime, because the report
// matters more.
func (s *Stay) Over(now time.Time, empty bool) bool {
	return s.Phase() != Staying && empty || s.Phase() == Leaving && now.After(s.killAt.Add(SweepTime))
}

// Report describes how the stay ended. If only some of the hosts served, the reason mentions this and explains why the
// first of the other hosts did not serve.
func (s *Stay) Report(r *Roster) jobfiles.Report {
	report := s.report
	if report.Outcome != corral.OutcomeFailed {
		report.Reason += r.shortfall()
	}
	report.Lost = r.Lost
	return report
}
