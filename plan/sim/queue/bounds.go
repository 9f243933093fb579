package queue

import (
	"math/bits"
	"time"
)

// Bounds are lower bounds of the starts of jobs while a plan is made, in which processors are only taken, never given
// back: a job does not start before an earlier planned job that is at most as wide and at most as long. So planning a
// long queue does not search the occupied time again for each job. A nil pointer has no bounds.
type bounds struct {
	same map[shape]time.Duration // :: shape → start of the last job of this shape

	// The element [i][j] is the bound of all jobs with at least 2^i processors and at least 2^j milliseconds.
	class [32][45]time.Duration
}

type shape struct {
	processors int
	requested  time.Duration
}

// fewJobs is the number of waiting jobs for which bounds cost more time than they save.
const fewJobs = 64

// newBounds returns bounds for the plan of a number of jobs.
func newBounds(jobs int) *bounds {
	if jobs <= fewJobs {
		return nil
	}
	return &bounds{same: map[shape]time.Duration{}}
}

// fit returns the earliest start of a job, and records it.
func (b *bounds) fit(p *plan, e *entry) (at time.Duration, ok bool) {
	if b == nil {
		return p.fit(e, p.now)
	}
	s := shape{e.Processors, e.Requested}
	n, length := uint(s.processors), uint(s.requested/time.Millisecond)
	from := max(p.now, b.same[s])
	for i := range min(bits.Len(n), len(b.class)) {
		for j := range min(bits.Len(length), len(b.class[i])) {
			from = max(from, b.class[i][j])
		}
	}
	if at, ok = p.fit(e, from); !ok {
		return 0, false
	}
	b.same[s] = at
	// All jobs of the next classes, rounded up, are at least as wide and as long as this one.
	if i, j := bits.Len(n-1), bits.Len(length); i < len(b.class) && j < len(b.class[i]) {
		b.class[i][j] = max(b.class[i][j], at)
	}
	return at, true
}
