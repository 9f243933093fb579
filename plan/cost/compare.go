package cost

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Point is the outcome of one choice of resources. Compared points must have costs in the same unit.
type Point struct {
	Makespan time.Duration
	Cost     Money
}

// Pareto returns the indices of the points of the front, by ascending makespan and thereby descending cost: no other point
// is neither slower nor more expensive. Of equal points only the first by tie is kept, which may be nil, then by index.
func Pareto(points []Point, tie func(i, j int) int) (front []int) {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := points[i], points[j]
		if before := cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Cost, b.Cost)); before != 0 || tie == nil {
			return before
		}
		return tie(i, j)
	})
	for _, i := range order {
		if n := len(front); n == 0 || points[i].Cost < points[front[n-1]].Cost {
			front = append(front, i)
		}
	}
	return front
}

// A Step is the outcome for a number of nodes.
type Step struct {
	Nodes int
	Point
}

// A Marginal is the effect of the nodes that one step adds to the previous step.
type Marginal struct {
	Nodes   int           // in total
	Saved   time.Duration // makespan saved; negative: it is longer
	Extra   Money         // additional cost; negative: it is cheaper
	SpeedUp float64       // makespan before ÷ makespan now
	Linear  float64       // nodes now ÷ nodes before: the speed-up at which the cost stays the same
	Warning string        // why the added nodes do not pay off; empty if the speed-up is at least linear
}

// Rate returns the time saved per additional cost, d(makespan) ÷ d(cost), in seconds per unit. It is 0 if no time is
// saved, and infinite if time is saved at no additional cost.
func (m Marginal) Rate() float64 {
	switch {
	case m.Saved <= 0:
		return 0
	case m.Extra <= 0:
		return math.Inf(1)
	}
	return m.Saved.Seconds() / m.Extra.Units()
}

// Marginals returns the effect of each step compared with the previous one. Additional nodes of the same price and
// speed lower the cost only if the speed-up is more than linear, which is rare: usually one node, or the smallest
// number of nodes that is fast enough, is cheapest. The numbers of nodes must be positive and ascending; otherwise the
// error is of kind Invalid.
func Marginals(steps []Step) ([]Marginal, error) {
	var all []Marginal
	for i, now := range steps {
		if now.Nodes < 1 || i > 0 && now.Nodes <= steps[i-1].Nodes {
			return nil, corral.Errorf(corral.Invalid, "step %d: the number of nodes must be positive and ascend, got "+
				"%d", i+1, now.Nodes)
		}
		if i > 0 {
			all = append(all, marginal(steps[i-1], now))
		}
	}
	return all, nil
}

func marginal(before, now Step) Marginal {
	m := Marginal{
		Nodes: now.Nodes, Saved: before.Makespan - now.Makespan, Extra: now.Cost.Plus(-before.Cost),
		SpeedUp: 1, Linear: float64(now.Nodes) / float64(before.Nodes),
	}
	if before.Makespan != now.Makespan {
		m.SpeedUp = float64(before.Makespan) / float64(now.Makespan)
	}
	if m.SpeedUp >= m.Linear {
		return m
	}
	m.Warning = fmt.Sprintf("%d nodes are only %.2f times as fast as %d, less than the linear %.2f times",
		now.Nodes, m.SpeedUp, before.Nodes, m.Linear)
	if m.Extra > 0 {
		m.Warning += ": the cost rises by " + m.Extra.Round(2)
	}
	return m
}
