package attempt

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Phase is how far a pilot has come towards its departure.
type Phase int

const (
	Staying  Phase = iota // workers are started as they are due
	Draining              // workers finish their tasks
	Leaving               // workers leave at once; at KillAt they are killed
)

// A Stay is how long a pilot may stay, and how it ends. The first reason to drain is kept, and so is the first reason
// to leave at once. A later one changes nothing, so that the report says what began the end.
type Stay struct {
	Started time.Time
	End     time.Time // the workers must have left
	RouteBy time.Time // corrald must have answered
	reserve time.Duration

	report jobfiles.Report // without an outcome: the pilot stays
	killAt time.Time       // zero: the pilot stays, or drains
}

// NewStay returns the stay of a pilot with that walltime. Its end leaves a reserve in which the pilot can go in order,
// so that the batch system never has to end it.
func NewStay(started time.Time, walltime time.Duration) *Stay {
	reserve := jobfiles.Reserve(walltime)
	return &Stay{
		Started: started,
		End:     started.Add(walltime - reserve),
		RouteBy: started.Add(min(routeWait, walltime/2)),
		reserve: reserve,
	}
}

// Phase returns how far the departure has come.
func (s *Stay) Phase() Phase {
	switch {
	case s.report.Outcome == "":
		return Staying
	case s.killAt.IsZero():
		return Draining
	}
	return Leaving
}

// Drain decides to leave when the tasks that run are finished.
func (s *Stay) Drain(o corral.Outcome, reason string) {
	if s.Phase() == Staying {
		s.report.Outcome, s.report.Reason = o, reason
	}
}

// lateNotice is the part of a pilot's time at its end in which a notice says no more than that the time is over.
const lateNotice = 10

// Notice takes in that the batch system, by a signal, is about to take the nodes back: what runs may finish, and
// nothing new begins. Batch systems are asked to send such signals before the walltime is over, too; a pilot that has
// had all but a tenth of its time has expired, and another may follow it without a retry.
func (s *Stay) Notice(now time.Time, signal string) {
	if s.End.Sub(now) <= s.End.Sub(s.Started)/lateNotice {
		s.Drain(corral.OutcomeExpired, "the batch system gave notice ("+signal+") near the end of the walltime")
		return
	}
	s.Drain(corral.OutcomePreempted, "the batch system gave notice ("+signal+") that it takes the nodes back")
}

// Leave decides to leave at once. A pilot that was draining when its time ended keeps its outcome: it has done what it
// was asked to do, and its reason says that something was cut. At the end of its time there is half of the reserve to
// leave in, which may be more than Grace.
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

// Fail decides to leave at once because the pilot cannot do its work. Transient says that another attempt may.
func (s *Stay) Fail(now time.Time, transient bool, reason string) {
	if s.Phase() != Leaving {
		s.Leave(now, corral.OutcomeFailed, reason)
		s.report.Transient = transient
	}
}

// FailHere is Fail for a reason that another node may not have. The node counts as lost.
func (s *Stay) FailHere(now time.Time, r *Roster, why string) {
	if s.Phase() != Leaving {
		s.Fail(now, true, why)
		s.report = Unfit(r.here, why)
		r.Lost = s.report.Lost
	}
}

// Unfit reports that a node cannot run a pilot; another may.
func Unfit(node, why string) jobfiles.Report {
	lost := corral.LostHost{Node: node, Why: why}
	return jobfiles.Report{
		Outcome: corral.OutcomeFailed, Transient: true, Reason: lost.String(), Lost: []corral.LostHost{lost},
	}
}

// A Sight is what a supervisor sees when it looks around.
type Sight struct {
	DirGone    bool     // somebody removed the job's directory
	ParentGone bool     // the process that started the supervisor, the batch system's, has ended
	Unreached  []string // addresses of corrald, while none of them has answered and the workers need it
}

// Consider looks for a reason to leave.
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
	case r.idle(now):
		s.Drain(corral.OutcomeIdle, "no task for "+r.limit.String())
	}
}

// departures is what becomes of a pilot whose workers left of their own accord.
var departures = map[Left]jobfiles.Report{
	LeftExpired:    {Outcome: corral.OutcomeExpired, Reason: "the walltime is over"},
	LeftDrained:    {Outcome: corral.OutcomeDrained, Reason: "asked to drain"},
	LeftAsked:      {Outcome: corral.OutcomeRemoved, Reason: "asked to leave"},
	LeftTerminated: {Outcome: corral.OutcomePreempted, Reason: "a signal ended the workers"},
}

// conclude decides to leave because every worker has. Workers that failed do not speak for the pilot unless all of them
// did.
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

// KillDue reports whether workers that are still there are to be killed.
func (s *Stay) KillDue(now time.Time) bool { return s.Phase() == Leaving && now.After(s.killAt) }

// Over reports whether the pilot leaves and nothing keeps it; empty: no worker process is left, and nothing that one
// left behind. What cannot be killed keeps the pilot no longer than SweepTime: the report matters more.
func (s *Stay) Over(now time.Time, empty bool) bool {
	return s.Phase() != Staying && empty || s.Phase() == Leaving && now.After(s.killAt.Add(SweepTime))
}

// Report says how the stay ended. If only some of the hosts served, the reason says so and why the first of the others
// did not.
func (s *Stay) Report(r *Roster) jobfiles.Report {
	report := s.report
	if report.Outcome != corral.OutcomeFailed {
		report.Reason += r.shortfall()
	}
	report.Lost = r.Lost
	return report
}
