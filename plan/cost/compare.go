package cost

import (
	"cmp"
	"slices"
	"time"
)

// A Point is the outcome of one choice of resources. Compared points must have costs in the same unit.
type Point struct {
	Makespan time.Duration
	Cost     Money
}

// Pareto returns the indices of the points of the front, by ascending makespan and thereby descending cost: no other
// point is neither slower nor more expensive. Of equal points only the first by tie is kept, which may be nil, then by
// index.
func Pareto(points []Point, tie func(i, j int) int) (front []int) {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := points[i], points[j]
		before := cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Cost, b.Cost))
		if before == 0 && tie != nil {
			return tie(i, j)
		}
		return before
	})
	for _, i := range order {
		if n := len(front); n == 0 || points[i].Cost < points[front[n-1]].Cost {
			front = append(front, i)
		}
	}
	return front
}
