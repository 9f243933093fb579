package moga

import (
	"math"

	"github.com/corral-pilot/corral/plan/cost"
)

// dominates reports whether a is no worse than b in both objectives, and better in at least one (Singh 2008, section
// 4.3).
func dominates(a, b cost.Point) bool {
	return a.Makespan <= b.Makespan && a.Cost <= b.Cost && a != b
}

// ranks returns the rank of each member: one more than the number of members that dominate it (equation 8). An
// infeasible member is dominated by all feasible ones.
func ranks(all []member) []int {
	r, feasible := make([]int, len(all)), 0
	for _, m := range all {
		if m.feasible {
			feasible++
		}
	}
	for i, m := range all {
		if r[i] = 1; !m.feasible {
			r[i] += feasible
			continue
		}
		for _, o := range all {
			if o.feasible && dominates(o.point, m.point) {
				r[i]++
			}
		}
	}
	return r
}

// averages returns the fitness of each rank before sharing: members are sorted by rank, places have the values N, N−1,
// …, and each rank gets the mean of its places (equations 9 and 10). many is the number of members of each rank.
func averages(rank []int) (fitness, many []float64) {
	n := len(rank)
	fitness, many = make([]float64, n+2), make([]float64, n+2)
	for _, r := range rank {
		many[r]++
	}
	above := 0.0
	for r := 1; r <= n+1; r++ {
		if many[r] > 0 {
			fitness[r] = float64(n) - above - 0.5*(many[r]-1)
			above += many[r]
		}
	}
	return fitness, many
}

// fitness returns the shared fitness of each member, in proportion to which parents are drawn (equations 11 to 13): the
// fitness of its rank, divided by the weighted number of members of the same rank within the distance sharing, and
// scaled so that the sum over a rank is unchanged. Distances are in objectives, relative to the range of the feasible
// members. Products are rounded before they are added, so that fused operations on some processors do not change the
// result.
func fitness(all []member, sharing float64) []float64 {
	rank := ranks(all)
	average, many := averages(rank)
	wide := span(all)
	shared, sum := make([]float64, len(all)), make([]float64, len(average))
	for i := range all {
		niche := 0.0
		for j := range all {
			if rank[i] != rank[j] {
				continue
			}
			if d := wide.distance(all[i], all[j]); d <= sharing {
				niche += 1 - float64(d/sharing)
			}
		}
		shared[i] = average[rank[i]] / niche // niche is at least 1: a member is closest to itself
		sum[rank[i]] += shared[i]
	}
	for i, r := range rank {
		shared[i] *= average[r] * many[r] / sum[r]
	}
	return shared
}

// A spread is the range of the feasible members of a population.
type spread struct{ makespan, cost float64 }

func span(all []member) (s spread) {
	var low, high cost.Point
	first := true
	for _, m := range all {
		switch {
		case !m.feasible:
		case first:
			low, high, first = m.point, m.point, false
		default:
			low = cost.Point{Makespan: min(low.Makespan, m.point.Makespan), Cost: min(low.Cost, m.point.Cost)}
			high = cost.Point{Makespan: max(high.Makespan, m.point.Makespan), Cost: max(high.Cost, m.point.Cost)}
		}
	}
	return spread{float64(high.Makespan - low.Makespan), float64(high.Cost - low.Cost)}
}

// distance returns the distance of two members with the same rank. An objective without differences is ignored.
func (s spread) distance(a, b member) float64 {
	part := func(difference, of float64) float64 {
		if of == 0 {
			return 0
		}
		return difference / of
	}
	x := part(float64(a.point.Makespan-b.point.Makespan), s.makespan)
	y := part(float64(a.point.Cost-b.point.Cost), s.cost)
	return math.Sqrt(float64(x*x) + float64(y*y))
}
