package prices

import (
	"math"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Change is the relative difference in runtime and cost between two choices: -0.1 means 10 % less.
type Change struct{ Runtime, Cost float64 }

// ChangeOf returns the change from one point to another.
func ChangeOf(from, to cost.Point) Change {
	return Change{
		relative(float64(from.Makespan), float64(to.Makespan)),
		relative(float64(from.Cost), float64(to.Cost)),
	}
}

// relative returns the difference of b from a relative to a; it is infinite if only a is 0.
func relative(a, b float64) float64 {
	if a == b {
		return 0
	}
	return (b - a) / math.Abs(a)
}

// Ratio returns the quotient of the magnitudes, R/C in tables 4.5 and 4.6 of the thesis. It is infinite if only the
// runtime changes, and 0 if the runtime does not change. It is meaningless without the signs, because both values may
// have improved, or both worsened, at the same ratio. Judge takes the signs into account.
func (c Change) Ratio() float64 {
	if c.Runtime == 0 {
		return 0
	}
	return math.Abs(c.Runtime) / math.Abs(c.Cost)
}

// A Verdict rates a change for a user who values time and money equally.
type Verdict string

const (
	Better   Verdict = "better"    // better in one, no worse in the other
	Worth    Verdict = "worth it"  // the gain in one exceeds the loss in the other
	Even     Verdict = "even"      // gain and loss are equal, or nothing changes
	NotWorth Verdict = "not worth" // the gain is smaller than the loss
	Worse    Verdict = "worse"     // worse in one, no better in the other
)

// Judge rates the change. Among the four combinations of signs, the ratio matters only for two: a faster but more
// expensive choice is worth it if the ratio is above 1, and a slower but cheaper choice if the ratio is below 1.
func (c Change) Judge() Verdict {
	gain := math.Abs(c.Runtime) - math.Abs(c.Cost) // assuming that the runtime falls
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
