package pilot

import (
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/pool"
)

// lose notes that a worker's host serves no more, and tells corrald. The others go on.
func (s *supervisor) lose(w *worker) {
	l := corral.LostHost{Host: w.number, Node: s.blamed(w), Why: w.reason.Error}
	s.lost = append(s.lost, l)
	s.note("node failed: %s; %d of %d hosts are left", l, s.serving(), s.order.Hosts)
	if s.serving() > 0 { // else we end, and the report says it
		s.tellLoss(l)
	}
}

// blamed returns the node on which a worker failed, unless it is not for the node.
func (s *supervisor) blamed(w *worker) string {
	if w.reason.Left == string(pool.LeaveRefused) {
		return ""
	}
	for _, other := range s.workers {
		if other.node == w.node && other.reason.Error == "" {
			return "" // it serves there
		}
	}
	if w.node == "" {
		return s.me.Host
	}
	return w.node
}

// serving counts the workers that did not fail.
func (s *supervisor) serving() int {
	n := 0
	for _, w := range s.workers {
		if w.reason.Error == "" {
			n++
		}
	}
	return n
}

// sumUp has the report's reason say that not all hosts served, and why the first of the others did not.
func (s *supervisor) sumUp() {
	if n := s.serving(); n > 0 && len(s.lost) > 0 && s.going.outcome != corral.OutcomeFailed {
		s.going.reason += fmt.Sprintf(" (%d of %d hosts served; %s)", n, s.order.Hosts, s.lost[0])
	}
}
