package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/plantest"
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

// Among outcomes whose cost, or weight, differs from the least by 1 % at most, the soonest is chosen, and among equally
// soon ones the one with the fewest cpus.
func TestTheSoonestOfThoseThatCostAboutTheSame(t *testing.T) {
	t.Parallel()
	made := &planning{Problem: plan.Problem{Sites: []plan.Site{cloud()}}}
	point := func(seconds, hours float64, peak int) outcome {
		return outcome{of: made, Point: plan.Point{Makespan: corral.Seconds(seconds * 1e9)},
			held: time.Duration(hours * float64(time.Hour)), peak: peak}
	}
	all := []outcome{point(900, 10, 4), point(700, 10.09, 9), point(700, 10.1, 8), point(690, 10.11, 8),
		point(100, 15, 30), point(99.5, 15.2, 30)}
	for i := range all {
		all[i].Cost.Money = cost.Money(all[i].held.Hours() * 1e6)
	}
	for _, tt := range []struct {
		goal plan.Goal
		want int
	}{
		{plan.Goal{Objective: plan.Cost}, 2},
		{plan.Goal{Objective: plan.Cost, Deadline: all[5].Makespan}, 5},
		{plan.Goal{Objective: plan.Cost, Budget: &cost.Amount{Money: all[0].Cost.Money}}, 0},
		{plan.Goal{Objective: plan.Makespan}, 5},
		{plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.5}, 5},
		{plan.Goal{Objective: plan.Tradeoff, Tradeoff: 1}, 2},
	} {
		p := *made
		p.Goal = tt.goal
		if got, ok := p.best(all); !ok || got != tt.want {
			t.Errorf("%+v: outcome %d is chosen, want %d", tt.goal, got, tt.want)
		}
	}
}

// A front with few points is refined as long as numbers of hosts remain between its points.
func TestTheFrontIsRefined(t *testing.T) {
	t.Parallel()
	w, err := plantest.Draw("sipht", 500, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, goal := plan.Problem{Work: w, Sites: []plan.Site{cloud()}}, plan.Goal{Objective: plan.Cost}
	coarse := front(explore(newPlanning(problem, goal, Options{}), Options{}))
	pl, err := Make(problem, goal, Options{})
	if err != nil || len(coarse) >= fullFront || len(pl.Front) < fullFront {
		t.Errorf("%d points become %d, %v", len(coarse), len(pl.Front), err)
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
