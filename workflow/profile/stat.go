package profile

import (
	"fmt"
	"math"
)

// A Stat summarises the values of one metric. The zero value summarises no values.
type Stat struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	SD    float64 `json:"sd"` // sample standard deviation, with the divisor count - 1; 0 for a single value

	// Min and Max are the extremes. Published tables do not contain them; Ranged is then false.
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Ranged bool    `json:"ranged"`
}

// Sum returns the sum of the values.
func (s Stat) Sum() float64 { return s.Mean * float64(s.Count) }

// cv returns the coefficient of variation, i.e. the standard deviation divided by the mean, or 0 if the mean is 0.
func (s Stat) cv() float64 {
	if s.Mean == 0 {
		return 0
	}
	return s.SD / s.Mean
}

// with returns the summary of the values of s and one more value.
func (s Stat) with(v float64) Stat {
	return s.merged(Stat{Count: 1, Mean: v, Min: v, Max: v, Ranged: true})
}

// merged returns the summary of the values of s and o. The sums of squares are combined as in Chan, Golub, LeVeque:
// Updating formulae and a pairwise algorithm for computing sample variances, 1979.
func (s Stat) merged(o Stat) Stat {
	if s.Count == 0 {
		return o
	}
	if o.Count == 0 {
		return s
	}
	n, a, b := float64(s.Count+o.Count), float64(s.Count), float64(o.Count)
	delta := o.Mean - s.Mean
	squares := s.squares() + o.squares() + delta*delta*a*b/n
	return Stat{
		Count: s.Count + o.Count, Mean: s.Mean + delta*b/n, SD: math.Sqrt(squares / (n - 1)),
		Min: min(s.Min, o.Min), Max: max(s.Max, o.Max), Ranged: s.Ranged && o.Ranged,
	}
}

// squares returns the sum of the squared distances from the mean.
func (s Stat) squares() float64 { return s.SD * s.SD * float64(max(s.Count-1, 0)) }

// mostCount is the maximum count, which is small enough that sums of counts do not overflow.
const mostCount = 1e15

// roundoff is the fraction by which a mean may lie outside the extremes: the extremes are exact, whereas the computed
// mean is rounded.
const roundoff = 1e-9

// leastSquared is the value that the maximum must exceed for the sd to be exact: the squares of far smaller values are
// below the smallest normal number, and lose digits.
const leastSquared = 1e-140

// validate returns an error for a summary that no set of values can have.
func (s Stat) validate() error {
	if s.Count < 1 || s.Count > mostCount {
		return fmt.Errorf("count %d is not a number from 1 to %g", s.Count, float64(mostCount))
	}
	for _, x := range []struct {
		name  string
		value float64
	}{{"mean", s.Mean}, {"sd", s.SD}, {"min", s.Min}, {"max", s.Max}} {
		if err := checkValue(x.value); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	if s.Ranged && (s.Min > s.Mean*(1+roundoff) || s.Mean > s.Max*(1+roundoff)) {
		return fmt.Errorf("mean %g is not between min %g and max %g", s.Mean, s.Min, s.Max)
	}
	if s.Count == 1 && s.SD != 0 {
		return fmt.Errorf("sd %g is not 0, but there is only one value", s.SD)
	}
	most := (s.Max-s.Mean)*(s.Mean-s.Min) + s.Max*s.Max*roundoff
	if s.Ranged && s.Max > leastSquared && s.squares()/float64(s.Count) > most {
		return fmt.Errorf("sd %g is more than values between min and max can have", s.SD) // Bhatia and Davis 2000
	}
	if !s.Ranged && (s.Min != 0 || s.Max != 0) {
		return fmt.Errorf("min or max is given, but ranged is not")
	}
	return nil
}
