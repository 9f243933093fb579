package plan_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

func candidate(makespan time.Duration, money cost.Money, cpus int) plan.Candidate {
	return plan.Candidate{Point: cost.Point{Makespan: makespan, Cost: money}, CPUs: cpus}
}

// Candidates within 1 % of the least cost, or of the least J, count as equal: the soonest is first, then the one with
// the fewest cpus. The references include candidates beyond the bounds. A cost of 0 neither divides nor prevails.
func TestOrder(t *testing.T) {
	t.Parallel()
	beyond := candidate(time.Second, 1, 1)
	beyond.Outside = true
	all := []plan.Candidate{candidate(900, 1000, 4), candidate(700, 1009, 9), candidate(700, 1010, 8),
		candidate(690, 1011, 8), candidate(100, 1500, 30), beyond}
	for _, tt := range []struct {
		name string
		goal plan.Goal
		all  []plan.Candidate
		want []int
	}{
		{"cost", plan.Goal{Objective: plan.Cost}, all, []int{2, 1, 0, 3, 4}},
		{"makespan", plan.Goal{Objective: plan.Makespan}, all, []int{4, 3, 1, 2, 0}},
		{"cpus", plan.Goal{Objective: plan.CPUs}, all, []int{0, 2, 3, 1, 4}},
		{"α = 0", plan.Goal{Objective: plan.Tradeoff}, all, []int{4, 3, 1, 2, 0}},
		{"nothing costs anything", plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole},
			[]plan.Candidate{candidate(5, 0, 1), candidate(3, 0, 2)}, []int{1, 0}},
		{"present pilots are free", plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole},
			[]plan.Candidate{candidate(3, 10, 1), candidate(5, 0, 2)}, []int{1, 0}},
		{"nothing is within the bounds", plan.Goal{}, []plan.Candidate{beyond}, nil},
	} {
		if got := tt.goal.Order(tt.all, nil); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The best candidate has a J of at most 1.01 times the least, and no sooner one has.
func TestTheBestIsTheSoonestOfTheNearlyBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		alpha := plan.Share(rapid.IntRange(0, int(plan.Whole)).Draw(t, "α"))
		var all []plan.Candidate
		for range rapid.IntRange(1, 12).Draw(t, "candidates") {
			all = append(all, candidate(time.Duration(rapid.Int64Range(1, 1000).Draw(t, "makespan"))*time.Minute,
				cost.Money(rapid.Int64Range(1, 1000).Draw(t, "cost"))*1000, rapid.IntRange(1, 9).Draw(t, "cpus")))
		}
		w := plan.Weigh(alpha, all)
		least := w.Of(slices.MinFunc(all, func(a, b plan.Candidate) int {
			if w.Of(a.Point) < w.Of(b.Point) {
				return -1
			}
			return 1
		}).Point)
		best := all[plan.Goal{Objective: plan.Tradeoff, Tradeoff: alpha}.Best(all, nil)]
		if w.Of(best.Point) > least*1.01+1e-9 || least < 1 {
			t.Fatalf("J of the best is %v, and the least is %v", w.Of(best.Point), least)
		}
		for _, c := range all {
			if w.Of(c.Point) < least*1.01-1e-9 && c.Makespan < best.Makespan {
				t.Fatalf("%+v is taken, and %+v is sooner", best, c)
			}
		}
	})
}

// A goal's bounds include their ends.
func TestWithin(t *testing.T) {
	t.Parallel()
	g := plan.Goal{Deadline: corral.Seconds(time.Hour), Budget: &cost.Amount{Money: 5}}
	for p, want := range map[cost.Point]bool{
		{Makespan: time.Hour, Cost: 5}: true, {Makespan: time.Hour + 1, Cost: 5}: false, {Makespan: time.Hour, Cost: 6}: false,
	} {
		if g.Within(p) != want || !(plan.Goal{}).Within(p) {
			t.Errorf("%+v: within %v, want %v", p, g.Within(p), want)
		}
	}
}
