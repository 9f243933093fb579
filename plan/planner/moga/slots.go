package moga

import (
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/slotted"
)

// Slots is the problem of choosing among the slots of a scheduler. Given are all of them, and all that are extensible:
// where these have room for each task that choice is always feasible, and where prices are alike it is the cheapest
// possible, for nothing of it is paid without being used.
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
