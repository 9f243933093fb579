package planner

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// If a walltime ends in the middle of the work, the next pilot replaces the previous one, and is shifted with the
// previous pilot if that one starts early or late. A pilot that starts after a pause follows no other.
func TestPilotsFollowWhereAWalltimeEnds(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, c := range []struct {
		name    string
		work    plan.Work
		edit    func(*plan.Site)
		follows []int
	}{
		{"two tasks a walltime", stages(t, 50*time.Minute, 1, 1, 1, 1, 1), func(*plan.Site) {}, []int{none, 0, 1}},
		{"no walltime ends", stages(t, 50*time.Minute, 1, 1, 1, 1, 1), func(s *plan.Site) { s.Walltime = 24 * time.Hour }, []int{none}},
		{"each on its own", stages(t, 50*time.Minute, 2, 2, 2, 2), func(s *plan.Site) { s.Hosts = 1 }, []int{none, none, 0, 1}},
		{"two hosts together", stages(t, 50*time.Minute, 2, 2, 2, 2), func(s *plan.Site) { s.Hosts = 2 }, []int{none, 0}},
		{"the queue is longer than a walltime", stages(t, 50*time.Minute, 1, 1, 1, 1, 1),
			func(s *plan.Site) { s.Wait = func(plan.Shape) time.Duration { return 3 * time.Hour } }, []int{none, none, none}},
		{"after a pause", stages(t, 50*time.Minute, 2, 1, 2), func(s *plan.Site) { s.Walltime = 24 * time.Hour }, []int{none, none, none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := cloud()
			s.Walltime, s.Overhead = 2*time.Hour, 30*time.Second
			s.Wait = func(plan.Shape) time.Duration { return 10 * time.Minute }
			c.edit(&s)
			pl, err := Make(plan.Problem{Work: c.work, Sites: []plan.Site{s}}, plan.Goal{Objective: plan.Makespan}, Options{})
			if err != nil || !pl.Feasible {
				t.Fatal(err, pl)
			}
			var follows []int
			for _, q := range pl.Pilots {
				if q.Follows == nil {
					follows = append(follows, none)
					continue
				}
				follows = append(follows, *q.Follows)
			}
			if !slices.Equal(follows, c.follows) {
				t.Errorf("the pilots follow %v, want %v: %+v", follows, c.follows, pl.Pilots)
			}
		})
	}
}
