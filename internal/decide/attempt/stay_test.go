package attempt

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// TestDeparture simulates events of a pilot with a time of 100 s, one after the other, and checks how the pilot leaves
// and when the remaining workers are killed.
func TestDeparture(t *testing.T) {
	t.Parallel()
	type all []func(*Stay, *Roster)
	drain := func(s *Stay, _ *Roster) { s.Drain(corral.OutcomeDrained, "asked to drain") }
	leave := func(now float64) func(*Stay, *Roster) {
		return func(s *Stay, _ *Roster) { s.Leave(at(now), corral.OutcomeRemoved, "asked to leave") }
	}
	look := func(now float64, see Sight) func(*Stay, *Roster) {
		return func(s *Stay, r *Roster) { s.Consider(at(now), see, r) }
	}
	left := func(i int, left Left, trouble string) func(*Stay, *Roster) {
		return func(_ *Stay, r *Roster) { r.Leave(r.Workers[i], left, trouble) }
	}
	notice := func(now float64) func(*Stay, *Roster) {
		return func(s *Stay, _ *Roster) { s.Notice(at(now), "user defined signal 1") }
	}
	here := func(s *Stay, r *Roster) { s.FailHere(at(1), r, "no disk") }
	quiet := look(1, Sight{})
	for name, c := range map[string]struct {
		events    all
		outcome   corral.Outcome // empty: the pilot stays
		transient bool
		reason    string
		killAt    float64 // 0: never
	}{
		"nothing":           {all{quiet, look(94, Sight{})}, "", false, "", 0},
		"its time ends":     {all{look(95, Sight{})}, corral.OutcomeExpired, false, "the walltime is over", 97.5},
		"asked to drain":    {all{drain}, corral.OutcomeDrained, false, "asked to drain", 0},
		"drain, then leave": {all{drain, leave(5)}, corral.OutcomeRemoved, false, "asked to leave", 7},
		"leave, then drain": {all{leave(5), drain}, corral.OutcomeRemoved, false, "asked to leave", 7},
		"leave twice":       {all{leave(5), leave(6)}, corral.OutcomeRemoved, false, "asked to leave", 7},
		"time ends while leaving": {all{leave(94.5), look(95, Sight{})},
			corral.OutcomeRemoved, false, "asked to leave", 96.5},
		"time ends while draining": {all{drain, look(95, Sight{})}, corral.OutcomeDrained, false,
			"asked to drain; what still ran was cut at the end of the walltime", 97.5},
		"directory gone": {all{look(1, Sight{DirGone: true})},
			corral.OutcomePreempted, false, "the job's directory is gone", 3},
		"parent gone while draining": {all{drain, look(1, Sight{ParentGone: true})}, corral.OutcomePreempted, false,
			"the process that started the pilot is gone", 3},
		"a notice": {all{notice(5)}, corral.OutcomePreempted, false,
			"the batch system gave notice (user defined signal 1) that it takes the nodes back", 0},
		"a notice near the end": {all{notice(90)}, corral.OutcomeExpired, false,
			"the batch system gave notice (user defined signal 1) near the end of the walltime", 0},
		"a notice before the last tenth": {all{notice(85.4)}, corral.OutcomePreempted, false,
			"the batch system gave notice (user defined signal 1) that it takes the nodes back", 0},
		"a notice when a tenth is left": {all{notice(85.5)}, corral.OutcomeExpired, false,
			"the batch system gave notice (user defined signal 1) near the end of the walltime", 0},
		"a notice while draining": {all{drain, notice(5)}, corral.OutcomeDrained, false, "asked to drain", 0},
		"time ends after a notice": {all{notice(5), look(95, Sight{})}, corral.OutcomePreempted, false,
			"the batch system gave notice (user defined signal 1) that it takes the nodes back;" +
				" what still ran was cut at the end of the walltime", 97.5},
		"no route yet": {all{look(50, Sight{Unreached: []string{"a", "b"}})}, "", false, "", 0},
		"no route": {all{look(50.5, Sight{Unreached: []string{"a", "b"}})},
			corral.OutcomeFailed, true, "node n1: no route to corrald at a, b", 52.5},
		"node unfit":               {all{here}, corral.OutcomeFailed, true, "node n1: no disk", 3},
		"node unfit while leaving": {all{leave(1), here}, corral.OutcomeRemoved, false, "asked to leave", 3},
		"one worker left":          {all{left(0, LeftDrained, ""), quiet}, "", false, "", 0},
		"all workers left": {all{left(0, LeftExpired, ""), left(1, LeftDrained, ""), quiet},
			corral.OutcomeDrained, false, "asked to drain", 3},
		"all signalled": {all{left(0, LeftTerminated, ""), left(1, LeftTerminated, ""), quiet},
			corral.OutcomePreempted, false, "a signal ended the workers", 3},
		"one failed, one left": {all{left(0, LeftExpired, ""), left(1, LeftUnable, "disk"), quiet},
			corral.OutcomeExpired, false, "the walltime is over (1 of 2 hosts served; host 1: disk)", 3.5},
		"all failed": {all{left(0, LeftUnable, "disk"), left(1, LeftUnable, "disk"), quiet},
			corral.OutcomeFailed, true, "every worker failed: disk", 3},
		"all refused": {all{left(0, LeftRefused, "token"), left(1, LeftRefused, "token"), quiet},
			corral.OutcomeFailed, false, "every worker failed: token", 3},
	} {
		s, r := NewStay(start, order(100*time.Second)), roster(2)
		for _, do := range c.events {
			do(s, r)
		}
		got := s.Report(r)
		if got.Outcome != c.outcome || got.Transient != c.transient || got.Reason != c.reason {
			t.Errorf("%s: %+v, want %q, transient %v: %s", name, got, c.outcome, c.transient, c.reason)
		}
		if s.KillDue(at(c.killAt)) || s.KillDue(at(c.killAt+0.001)) != (c.killAt > 0) {
			t.Errorf("%s: workers are killed after %s, want %v", name, s.killAt.Sub(start), c.killAt)
		}
	}
}

// order returns an order with a walltime.
func order(walltime time.Duration) jobfiles.PilotOrder {
	return jobfiles.PilotOrder{Shape: corral.Shape{Walltime: corral.Seconds(walltime)}}
}

// A pilot that has been idle for long enough stays for its minimum stay, which counts from the start of its job.
func TestMinStay(t *testing.T) {
	t.Parallel()
	o := order(time.Hour)
	o.MinStay = corral.Seconds(30 * time.Second)
	s, r := NewStay(start, o), roster(1)
	r.Workers[0].Start()
	r.Workers[0].Register(at(2))
	for _, now := range []float64{20, 29.9, 30} {
		r.Workers[0].Idle(at(now).Sub(at(2)), at(now))
		s.Consider(at(now), Sight{}, r)
		if left := s.Phase() != Staying; left != (now == 30) || !s.IdleFrom().Equal(at(30)) {
			t.Errorf("after %g s: it leaves: %v", now, left)
		}
	}
	if got := s.Report(r); got.Outcome != corral.OutcomeIdle {
		t.Errorf("%+v", got)
	}
}

// A leaving pilot waits for its workers and their remaining processes, but not for processes that cannot be killed.
func TestOver(t *testing.T) {
	t.Parallel()
	s := NewStay(start, order(time.Hour))
	if s.Over(at(1), true) {
		t.Error("a pilot that stays is over when it has no process")
	}
	s.Drain(corral.OutcomeIdle, "no task")
	if s.Over(at(1000), false) || !s.Over(at(1), true) {
		t.Error("a pilot that drains is not over exactly when nothing is left")
	}
	s.Leave(at(10), corral.OutcomeRemoved, "asked to leave")
	if s.Over(at(10+2+5), false) || !s.Over(at(10+2+5.1), false) || !s.Over(at(10), true) {
		t.Error("a pilot that leaves is not over when nothing is left, or 5 s after it killed what is")
	}
}
