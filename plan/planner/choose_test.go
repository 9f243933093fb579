package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// The neighbours of a plan are the fastest, the next faster and the next cheaper plan; among plans with about the same
// makespan, the cheapest is chosen.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	point := func(seconds, hours float64) plan.Point {
		return plan.Point{Makespan: corral.Seconds(seconds * 1e9), CoreHours: hours}
	}
	all := []plan.Point{point(18, 8), point(18.001, 7), point(18.002, 5), point(20, 4), point(22, 3), point(24, 2),
		point(34, 1), point(60, 0.5)}
	for _, tt := range []struct {
		of            plan.Point
		sooner, later []plan.Point
	}{
		{all[5], []plan.Point{all[2], all[4]}, []plan.Point{all[6]}},
		{all[3], []plan.Point{all[2]}, []plan.Point{all[4]}},
		{all[0], nil, []plan.Point{all[1]}},
		{all[7], []plan.Point{all[2], all[6]}, nil},
	} {
		sooner, later := neighbours(tt.of, all)
		if diff := cmp.Diff(tt.sooner, sooner); diff != "" {
			t.Errorf("sooner than %v: %s", tt.of, diff)
		}
		if diff := cmp.Diff(tt.later, later); diff != "" {
			t.Errorf("cheaper than %v: %s", tt.of, diff)
		}
	}
}
