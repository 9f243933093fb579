package selection

import (
	"cmp"
	"math"
	"slices"
)

// A Run is what a task took at a site, and what it was expected to take there.
type Run struct{ Took, Expected float64 }

// Factor is how many times as much a site's runs take as was expected: the median of the ratios, so that one run that
// hung does not count for more than any other. Runs of which either is not positive say nothing. Of none the factor is
// 1, and n is 0.
func Factor(runs []Run) (factor float64, n int) {
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

// Processors are those of one model in a pool, and the rate of each.
type Processors struct {
	Cores int
	Rate  float64
}

// PoolRate is the mean rate of a pool's cores; of none it is 0. Whoever knows which slot a task gets takes that slot's.
func PoolRate(models []Processors) float64 {
	cores, sum := 0, 0.0
	for _, m := range models {
		if m.Cores > 0 && m.Rate > 0 {
			cores, sum = cores+m.Cores, sum+float64(m.Cores)*m.Rate
		}
	}
	return sum / float64(max(1, cores))
}

// A Span is from when until when something ran.
type Span struct{ Start, End float64 }

// Completion divides the time from the first instant to the last end into that in which something ran, the length of
// the union of all spans, and that in which nothing did: gaps between pilots are waits, too. Their sum is the time to
// completion.
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

// Quantised rounds an amount to two significant digits: jobs whose amounts differ by little then look alike to a
// matchmaker, which negotiates for each sort of job by itself.
func Quantised(amount float64) float64 {
	if !(amount > 0) || math.IsInf(amount, 1) {
		return amount
	}
	unit := math.Pow(10, math.Floor(math.Log10(amount))-1)
	return math.Round(amount/unit) * unit
}

// A Drift compares what was predicted of a run, one instruction for each cycle, with what was counted.
type Drift struct {
	Predicted    float64 // cycles: the instructions counted on the reference machine
	Cycles       float64
	Instructions float64
}

// Error is by how many percent the prediction's excess over the cycles is not explained by instructions per cycle (the
// paper's equation 6), which is the drift of the number of instructions and nothing else.
func (d Drift) Error() float64 {
	excess := d.Predicted / d.Cycles
	return math.Abs(excess-d.Instructions/d.Cycles) / excess * 100
}

// TimeError is by how many percent a time predicted with a clock exceeds that of the run, whose mean clock was another.
func (d Drift) TimeError(predicted, mean float64) float64 {
	return 100 * (d.Predicted/d.Cycles*mean/predicted - 1)
}
