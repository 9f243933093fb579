package selection

import (
	"cmp"
	"math"
	"slices"
)

// An Observation holds the actual and the expected time of a task at a site.
type Observation struct{ Took, Expected float64 }

// Factor returns the ratio of actual to expected times at a site: the median, so that a single run that hung has no
// more weight than any other. It ignores runs with a value that is not positive. n is the number of runs used; without
// runs the factor is 1.
func Factor(runs []Observation) (factor float64, n int) {
	var ratios []float64
	for _, r := range runs {
		if ratio := r.Took / r.Expected; r.Took > 0 && r.Expected > 0 && !math.IsInf(ratio, 0) && ratio > 0 {
			ratios = append(ratios, ratio)
		}
	}
	if len(ratios) == 0 {
		return 1, 0
	}
	slices.Sort(ratios)
	n = len(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2, n
}

// Processors describes the cores of one processor model in a pool, with the rate per core.
type Processors struct {
	Cores int
	Rate  float64
}

// PoolRate returns the mean rate of a pool's cores, or 0 if the pool has no cores. If the slot of a task is known, use
// the rate of that slot instead.
func PoolRate(models []Processors) float64 {
	cores, sum := 0, 0.0
	for _, m := range models {
		if m.Cores > 0 && m.Rate > 0 {
			cores, sum = cores+m.Cores, sum+float64(m.Cores)*m.Rate
		}
	}
	return sum / float64(max(1, cores))
}

// A Span is the interval in which something ran.
type Span struct{ Start, End float64 }

// Completion divides the time from an instant to the last end into the time in which something ran, which is the length
// of the union of all spans, and the remaining time, in which nothing ran: gaps between pilots count as waits. The sum
// of the two is the time to completion.
func Completion(from float64, spans []Span) (waited, ran float64) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	reached := from
	for _, s := range spans {
		if s.End <= reached {
			continue
		}
		waited += max(0, s.Start-reached)
		ran += s.End - max(s.Start, reached)
		reached = s.End
	}
	return waited, ran
}

// Quantised rounds an amount to two significant digits. Jobs with similar amounts then look alike to a matchmaker,
// which negotiates once per class of identical jobs.
func Quantised(amount float64) float64 {
	if !(amount > 0) || math.IsInf(amount, 1) {
		return amount
	}
	unit := math.Pow(10, math.Floor(math.Log10(amount))-1)
	return math.Round(amount/unit) * unit
}

// A Drift compares the prediction for a run, which assumes one instruction per cycle, with the counters of the run.
type Drift struct {
	Predicted    float64 // cycles: the number of instructions on the reference machine
	Cycles       float64
	Instructions float64
}

// Error returns, as a percentage, how far the prediction exceeds the number of cycles beyond what instructions per
// cycle explain (the paper's equation 6). It is the drift of the number of instructions alone.
func (d Drift) Error() float64 {
	excess := d.Predicted / d.Cycles
	return math.Abs(excess-d.Instructions/d.Cycles) / excess * 100
}

// TimeError returns the percentage by which a time predicted with one clock exceeds that of the run with another mean
// clock.
func (d Drift) TimeError(predicted, mean float64) float64 {
	return 100 * (d.Predicted/d.Cycles*mean/predicted - 1)
}
