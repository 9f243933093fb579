package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
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

// A slower outcome that is cheaper only by the rounding of its pilots' costs is not of the front.
func TestRoundingDoesNotMakeTheFront(t *testing.T) {
	t.Parallel()
	tariff, err := cost.ParseTariff("1SU/cpu-hour", "")
	if err != nil {
		t.Fatal(err)
	}
	p := &planning{Problem: plan.Problem{Sites: []plan.Site{{Tariff: plan.Tariff(tariff)}}}}
	of := func(seconds float64, micro cost.Money, pilots int) outcome {
		return outcome{of: p, pilots: pilots, Point: plan.Point{Makespan: corral.Seconds(seconds * 1e9),
			Cost: cost.Amount{Money: micro, Unit: "SU"}}}
	}
	got := frontier([]outcome{of(6900, 2_666_667, 1), of(7500, 2_666_666, 2), of(8000, 2_666_600, 2)})
	if diff := cmp.Diff([]int{0, 2}, got); diff != "" {
		t.Errorf("front (-want +got):\n%s", diff)
	}
}
