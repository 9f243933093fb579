package cost

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Point is what one choice of resources leads to. Points that are compared have costs of one unit.
type Point struct {
	Makespan time.Duration
	Cost     Money
}

// Pareto returns the indices of the points that no other dominates, by makespan, then cost, then index. One point
// dominates another if it is no slower and no dearer, and not equal; equal points are all kept or all left out.
func Pareto(points []Point) []int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := points[i], points[j]
		return cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Cost, b.Cost), cmp.Compare(i, j))
	})
	var front []int
	for _, i := range order {
		if n := len(front); n == 0 || points[i].Cost < points[front[n-1]].Cost || points[i] == points[front[n-1]] {
			front = append(front, i)
		}
	}
	return front
}

// A Change is by how much the runtime and the cost differ from one choice to another: -0.1 is a tenth less.
type Change struct{ Runtime, Cost float64 }

// ChangeOf returns the change from one point to another.
func ChangeOf(from, to Point) Change {
	return Change{
		relative(float64(from.Makespan), float64(to.Makespan)),
		relative(float64(from.Cost), float64(to.Cost)),
	}
}

// relative is by how much b differs from a, as a part of a; infinite if only a is 0.
func relative(a, b float64) float64 {
	if a == b {
		return 0
	}
	return (b - a) / math.Abs(a)
}

// Ratio is the quotient of the magnitudes, R/C of the thesis's tables 4.5 and 4.6: infinite if the cost stays, 0 if
// neither changes. It says nothing without the signs: 4.5 may be better, or worse, in both. Judge looks at them.
func (c Change) Ratio() float64 {
	if c.Runtime == 0 {
		return 0
	}
	return math.Abs(c.Runtime) / math.Abs(c.Cost)
}

// A Verdict says whether a change is worth it to somebody to whom time and money matter the same.
type Verdict string

const (
	Better   Verdict = "better"    // in one, and no worse in the other
	Worth    Verdict = "worth it"  // more is gained in the one than is lost in the other
	Even     Verdict = "even"      // as much is gained as is lost, or nothing changes
	NotWorth Verdict = "not worth" // less is gained than is lost
	Worse    Verdict = "worse"     // in one, and no better in the other
)

// Judge is the switch test: of the four cases of signs, only faster and dearer, and slower and cheaper, are a matter
// of the ratio; in the first it must be above 1, in the second below.
func (c Change) Judge() Verdict {
	gain := math.Abs(c.Runtime) - math.Abs(c.Cost) // by runtime, when it falls
	if c.Runtime > 0 {
		gain = -gain
	}
	switch {
	case c.Runtime == 0 && c.Cost == 0:
		return Even
	case c.Runtime <= 0 && c.Cost <= 0:
		return Better
	case c.Runtime >= 0 && c.Cost >= 0:
		return Worse
	case gain > 0:
		return Worth
	case gain < 0:
		return NotWorth
	}
	return Even
}

// A Step is what so many nodes lead to.
type Step struct {
	Nodes int
	Point
}

// A Marginal is what the nodes of one step add to those of the step before.
type Marginal struct {
	Nodes   int           // in all
	Saved   time.Duration // of the makespan; negative: it is longer
	Extra   Money         // negative: it is cheaper
	SpeedUp float64       // makespan before ÷ makespan now
	Linear  float64       // nodes now ÷ nodes before: the speed-up at which the cost stays
	Warning string        // why the nodes do not pay; empty if the speed-up is linear or better
}

// Rate is what is saved for what is paid more, d(makespan) ÷ d(cost), in seconds for a unit; infinite if nothing more
// is paid for what is saved, and 0 if nothing is saved.
func (m Marginal) Rate() float64 {
	switch {
	case m.Saved <= 0:
		return 0
	case m.Extra <= 0:
		return math.Inf(1)
	}
	return m.Saved.Seconds() / m.Extra.Units()
}

// Marginals returns what each step adds to the one before. Nodes of one price and speed lower the cost only if the
// speed-up is more than linear, which it hardly ever is: one node, or the fewest that are fast enough, are cheapest.
// Steps must ascend in nodes, from 1; otherwise the error is of kind Invalid.
func Marginals(steps []Step) ([]Marginal, error) {
	var all []Marginal
	for i, now := range steps {
		if now.Nodes < 1 || i > 0 && now.Nodes <= steps[i-1].Nodes {
			return nil, corral.Errorf(corral.Invalid, "step %d: %d nodes do not ascend", i+1, now.Nodes)
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
	m.Warning = fmt.Sprintf("%d nodes are %.2f times as fast as %d, which is less than %.2f times",
		now.Nodes, m.SpeedUp, before.Nodes, m.Linear)
	if m.Extra > 0 {
		m.Warning += ": the cost rises by " + m.Extra.Round(2)
	}
	return m
}
