package moga

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/cost"
)

// at returns a member with the given makespan in hours and cost.
func at(hours, money int) member {
	p := cost.Point{Makespan: time.Duration(hours) * time.Hour, Cost: cost.Money(money)}
	return member{point: p, feasible: true}
}

// TestFigure9 is figure 9 of the thesis: three plans that do not dominate each other, one that is dominated by the
// second, and one that is dominated by the second and the third.
func TestFigure9(t *testing.T) {
	t.Parallel()
	all := []member{at(1, 9), at(3, 5), at(7, 2), at(4, 8), at(8, 6)}
	rank := ranks(all)
	if want := []int{1, 1, 1, 2, 3}; !slices.Equal(rank, want) {
		t.Errorf("ranks %v, want %v", rank, want)
	}
	average, _ := averages(rank)
	var got []float64
	for _, r := range rank {
		got = append(got, average[r])
	}
	if want := []float64{4, 4, 4, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("fitness %v, want %v", got, want)
	}
}

// An infeasible plan ranks below all feasible ones, and does not affect their range.
func TestInfeasible(t *testing.T) {
	t.Parallel()
	all := []member{at(1, 9), {}, at(3, 9), {}}
	if rank := ranks(all); !slices.Equal(rank, []int{1, 3, 2, 3}) {
		t.Errorf("ranks %v", rank)
	}
	if wide := span(all); wide.makespan != float64(2*time.Hour) || wide.cost != 0 {
		t.Errorf("they span %v", wide)
	}
}

// Sharing does not change the sum of a rank, and equal members have equal shares; all fitness is positive, so that the
// probabilities of parents sum to one (F12).
func TestSharing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) member {
			if rapid.IntRange(0, 5).Draw(t, "feasible") == 0 {
				return member{}
			}
			return at(rapid.IntRange(0, 9).Draw(t, "hours"), rapid.IntRange(0, 9).Draw(t, "cost"))
		}), 1, 30).Draw(t, "members")
		rank := ranks(all)
		average, many := averages(rank)
		shared, sum := fitness(all, 0.041), make([]float64, len(average))
		for i, f := range shared {
			if !(f > 0) {
				t.Fatalf("fitness %g", f)
			}
			sum[rank[i]] += f
			for j := range all {
				if all[i].point == all[j].point && all[i].feasible == all[j].feasible && math.Abs(f-shared[j]) > 1e-9 {
					t.Fatalf("equal members have %g and %g", f, shared[j])
				}
			}
		}
		total := 0.0
		for r := range sum {
			if total += sum[r]; math.Abs(sum[r]-average[r]*many[r]) > 1e-6 {
				t.Fatalf("rank %d has %g, and %g before", r, sum[r], average[r]*many[r])
			}
		}
		if n := float64(len(all)); math.Abs(total-n*(n+1)/2) > 1e-6 {
			t.Fatalf("all fitness is %g of %g members", total, n)
		}
	})
}

// A member in a crowd has a lower fitness than an isolated one.
func TestNiche(t *testing.T) {
	t.Parallel()
	all := []member{at(0, 100_000), at(100, 1_000), at(101, 999), at(5_000, 0)}
	got := fitness(all, 0.041)
	if got[1] >= got[0] || got[1] >= got[3] {
		t.Errorf("fitness %v", got)
	}
}
