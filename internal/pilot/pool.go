package pilot

import (
	"errors"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
)

// unprepared is the report of a pilot whose workers have no HTCondor. A package that is not installed may be, before
// the next attempt.
func (s *supervisor) unprepared(err error) order.Report {
	r := order.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	if errors.Is(err, condorworker.ErrNotInstalled) {
		r.Transient, r.Missing = true, s.order.Condor.Digest
	}
	return r
}

// seekPool begins to find out how the pool reaches this node, once corrald was reached or is not waited for.
func (s *supervisor) seekPool(now time.Time) {
	if s.joining == nil || !s.joining.Due(now, s.link != nil) {
		return
	}
	var ask broker.CallBack
	if s.link != nil {
		ask = s.link.CallBack
	}
	s.joining.Begin(s.seeking, ask)
}

// takeWay takes in how the pool reaches this node.
func (s *supervisor) takeWay(w condorworker.Way) {
	measured := condorworker.Measured(w.Choice)
	if w.Err != nil {
		if s.going == nil {
			if len(w.Choice.Measured) > 0 {
				s.say("broker", "no way to the pool was found; "+measured)
			}
			if corral.KindOf(w.Err) == corral.Unavailable {
				s.failHere(w.Err.Error())
			} else {
				s.fail(false, w.Err.Error())
			}
		}
		return
	}
	s.joining.Take(w.Choice)
	s.say("broker", w.Choice.Reason+"; "+measured)
}

// mayStart reports whether what workers need is there: a route to corrald, whose lease they serve under; or for an
// HTCondor pool the way into it.
func (s *supervisor) mayStart() bool {
	if s.joining == nil {
		return s.link != nil
	}
	return s.joining.Ready()
}
