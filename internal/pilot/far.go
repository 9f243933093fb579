package pilot

import (
	"time"

	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
	"github.com/corral-pilot/corral/internal/pilot/process"
)

// hearHost takes in what only a host says.
func (s *supervisor) hearHost(w *worker, said process.Word) {
	switch {
	case said.Hello != nil:
		s.greet(w, *said.Hello)
	case said.Note != "":
		s.note("worker %s on node %s: %s", w.id, w.node, said.Note)
	case said.CallBack != nil:
		by, q, ask := w.child, *said.CallBack, broker.CallBack(condorworker.NotAtSchedd)
		if s.link != nil {
			ask = s.link.CallBack
		}
		s.saying.Go(func() {
			a := answerTo(q, ask)
			select {
			case s.answers <- answered{by, a}:
			case <-s.done:
			}
		})
	}
}

// answered is what corrald answered to a host.
type answered struct {
	to     *process.Child
	answer process.CalledBack
}

// greet gives a host its order, unless its clock is wrong.
func (s *supervisor) greet(w *worker, h process.Hello) {
	now := time.Now()
	ours := now
	if s.link != nil {
		ours = now.Add(s.link.ClockOffset())
	}
	order, err := s.hostOrder(w, now)
	if bad := node.CheckClock(ours.Sub(h.Now)); bad != nil {
		err = bad
	}
	if err != nil {
		w.child.Last = process.Word{Left: process.LeftUnable, Error: err.Error()}
		w.child.Tell(process.Ask{Leave: true})
		return
	}
	s.note("worker %s: node %s is %s, process %d", w.id, w.node, h.Host, h.PID)
	w.child.Tell(process.Ask{Host: &order})
	if s.going != nil {
		w.child.Tell(process.Ask{Drain: s.going.killAt.IsZero(), Leave: !s.going.killAt.IsZero()})
	}
}

// hostOrder is what another node needs to know for a worker.
func (s *supervisor) hostOrder(w *worker, now time.Time) (process.HostOrder, error) {
	o, err := s.workerOrder(w, now)
	return process.HostOrder{Order: o, Dir: s.dir, Linked: s.link != nil && s.joining != nil && !s.order.Condor.Attached,
		HungAfter: s.hungAfter(), Env: carried()}, err
}
