package moga

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/slotted"
)

// Slots returns the problem of choosing among the slots of a scheduler. Two chromosomes are given: all slots, and all
// extensible slots. If the extensible slots have room for each task, choosing them is always feasible, and with equal
// prices it is the cheapest one, because unused parts of extensible slots are not paid for.
func Slots(s *slotted.Scheduler) Problem {
	n := s.Slots()
	all := SetOf(n, func(int) bool { return true })
	extensible := SetOf(n, func(i int) bool { return s.Slot(i).Extensible })
	return Problem{
		Slots: n,
		Given: []Set{all, extensible},
		Evaluator: func() func(Set) (cost.Point, bool) {
			e := s.Evaluator()
			return func(chosen Set) (cost.Point, bool) { return e.Point(chosen.Has) }
		},
	}
}
