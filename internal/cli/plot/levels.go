package plot

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A Span is a number of cpus that are held or used between two times.
type Span struct {
	From, To corral.Seconds
	CPUs     int
}

// A Level is the number of cpus from a certain time on.
type Level struct {
	From corral.Seconds
	CPUs float64 // the mean if levels were thinned
}

// Levels represents numbers of cpus over time, sorted by From; each level lasts until the next one starts, and the last
// is 0. Neighbouring levels differ.
type Levels []Level

// Sum adds up spans. A span that does not end after its start is ignored.
func Sum(spans []Span) Levels {
	type change struct {
		at corral.Seconds
		by int
	}
	changes := make([]change, 0, 2*len(spans))
	for _, s := range spans {
		if s.To > s.From {
			changes = append(changes, change{s.From, s.CPUs}, change{s.To, -s.CPUs})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var all Levels
	now := 0
	for i := 0; i < len(changes); {
		at, before := changes[i].at, now
		for ; i < len(changes) && changes[i].at == at; i++ {
			now += changes[i].by
		}
		if now != before {
			all = append(all, Level{at, float64(now)})
		}
	}
	return all
}

// End returns the end of the last span.
func (l Levels) End() corral.Seconds {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].From
}

// Peak returns the maximum number of cpus at once.
func (l Levels) Peak() float64 {
	peak := 0.
	for _, at := range l {
		peak = max(peak, at.CPUs)
	}
	return peak
}

// Thin returns l if l has at most n levels. Otherwise it returns the means of n equal parts of the time, so that the
// area below the levels remains the same except for rounding. A picture cannot show more levels than it has columns.
func (l Levels) Thin(n int) Levels {
	if len(l) <= n {
		return l
	}
	begin, width := l[0].From, float64(l.End()-l[0].From)/float64(n)
	sums := make([]float64, n) // sums of cpus × parts
	for i, at := range l[:len(l)-1] {
		from, to := float64(at.From-begin)/width, float64(l[i+1].From-begin)/width
		for k := min(int(from), n-1); k < n && float64(k) < to; k++ {
			sums[k] += at.CPUs * (min(to, float64(k+1)) - max(from, float64(k)))
		}
	}
	thin := make(Levels, 0, n+1)
	for k, cpus := range sums {
		thin = append(thin, Level{begin + corral.Seconds(float64(k)*width), cpus})
	}
	return append(thin, Level{l.End(), 0})
}

// Held returns the cpus of the plan's pilots, from the start of their jobs until they are released.
func Held(p *plan.Plan) Levels {
	spans := make([]Span, len(p.Pilots))
	for i, q := range p.Pilots {
		spans[i] = Span{q.Start, q.End, q.HeldCPUs()}
	}
	return Sum(spans)
}

// Busy returns the cpus used by the tasks of the plan's schedule, including those on pilots that existed before the
// plan.
func Busy(p *plan.Plan) Levels {
	spans := make([]Span, len(p.Schedule))
	for i, at := range p.Schedule {
		spans[i] = Span{at.Start, at.End, at.UsedCPUs()}
	}
	return Sum(spans)
}
