// Package availability has the profile of a machine's free processors: how many of them are free at each instant from
// now on, as far as running jobs, planned starts and reservations are known. It is what backfilling schedulers plan on
// (Mu'alem and Feitelson, Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2
// with backfilling, IEEE TPDS 12(6), 2001, §2.1), and what a scheduler advertises whose holes can be reserved.
//
// The words: a profile is a step function of time. A job of n processors and a length fits at an instant if n are free
// from then on for so long. Processors are counted, not named: whether a job keeps the same ones does not appear here.
//
// The one invariant: no step has fewer free processors than none, nor more than the machine has, and neighbours
// differ. A profile grows with what is planned, not with the time that has passed, if its owner calls Forget.
package availability

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"
)

// Forever is the end of what has none.
const Forever time.Duration = math.MaxInt64

// A Profile says how many processors are free when. Make one with New.
type Profile struct {
	processors int
	steps      []step // in the order of time; the last one has no end
}

// A step is how many are free from an instant on, until the next step.
type step struct {
	at   time.Duration
	free int
}

// New returns the profile of a machine of which all processors are free from an instant on, for ever.
func New(processors int, from time.Duration) *Profile {
	return &Profile{processors: processors, steps: []step{{from, processors}}}
}

// Processors returns how many the machine has.
func (p *Profile) Processors() int { return p.processors }

// Clone returns a copy that changes on its own.
func (p *Profile) Clone() *Profile { return &Profile{p.processors, slices.Clone(p.steps)} }

// Free returns how many processors are free at an instant, which must not lie before what was forgotten.
func (p *Profile) Free(at time.Duration) int { return p.steps[p.index(at)].free }

// Least returns how many are free throughout the time from one instant until another; if that is none, at the first.
func (p *Profile) Least(from, to time.Duration) int {
	i := p.index(from)
	least := p.steps[i].free
	for i++; i < len(p.steps) && p.steps[i].at < to; i++ {
		least = min(least, p.steps[i].free)
	}
	return least
}

// Fit returns the earliest instant, not before from, at which n processors are free for so long. ok is false if there
// is none: the machine has fewer, or what is taken has no end.
func (p *Profile) Fit(from, length time.Duration, n int) (at time.Duration, ok bool) {
	i := p.index(from)
	at = max(from, p.steps[i].at)
	for ; i < len(p.steps); i++ {
		switch end := p.end(i); {
		case p.steps[i].free < n:
			at = end
		case end >= after(at, length):
			return at, true
		}
	}
	return 0, false
}

// Take takes n processors from one instant until another. It panics if fewer are free, which is a defect of the caller.
func (p *Profile) Take(from, to time.Duration, n int) { p.change(from, to, -n) }

// Give gives back what was taken. It panics if that was less, which is a defect of the caller.
func (p *Profile) Give(from, to time.Duration, n int) { p.change(from, to, n) }

// Forget drops what lies before an instant.
func (p *Profile) Forget(before time.Duration) {
	i := p.index(before)
	p.steps = slices.Delete(p.steps, 0, i)
	p.steps[0].at = max(p.steps[0].at, before)
}

// Steps yields, in the order of time, since when how many processors are free. The last number holds for ever.
func (p *Profile) Steps() iter.Seq2[time.Duration, int] {
	return func(yield func(time.Duration, int) bool) {
		for _, s := range p.steps {
			if !yield(s.at, s.free) {
				return
			}
		}
	}
}

// index is the step that holds at an instant; before the first it is that.
func (p *Profile) index(at time.Duration) int {
	return max(0, sort.Search(len(p.steps), func(i int) bool { return p.steps[i].at > at })-1)
}

// end is where a step ends.
func (p *Profile) end(i int) time.Duration {
	if i+1 < len(p.steps) {
		return p.steps[i+1].at
	}
	return Forever
}

// after is an instant so long after another, or for ever.
func after(at, length time.Duration) time.Duration {
	if at > Forever-length {
		return Forever
	}
	return at + length
}

// change adds to what is free from one instant until another.
func (p *Profile) change(from, to time.Duration, by int) {
	if from = max(from, p.steps[0].at); to <= from || by == 0 {
		return
	}
	first, last := p.split(from), len(p.steps)
	if to < Forever {
		last = p.split(to)
	}
	for i := first; i < last; i++ {
		p.steps[i].free += by
		if free := p.steps[i].free; free < 0 || free > p.processors {
			panic(fmt.Sprintf("availability: %d of %d processors are free at %s", free, p.processors, p.steps[i].at))
		}
	}
	if last < len(p.steps) {
		p.join(last)
	}
	p.join(first)
}

// split has a step begin at an instant, which must not lie before the first, and returns its index.
func (p *Profile) split(at time.Duration) int {
	i := p.index(at)
	if p.steps[i].at == at {
		return i
	}
	p.steps = slices.Insert(p.steps, i+1, step{at, p.steps[i].free})
	return i + 1
}

// join removes a step at which nothing changes.
func (p *Profile) join(i int) {
	if i > 0 && p.steps[i-1].free == p.steps[i].free {
		p.steps = slices.Delete(p.steps, i, i+1)
	}
}

// From returns the profile as it counts from an instant on, which is its 0.
func (p *Profile) From(now time.Duration) *Profile {
	c := p.Clone()
	c.Forget(now)
	for i := range c.steps {
		c.steps[i].at -= now
	}
	return c
}

// AtMost returns the profile of no more than n processors.
func (p *Profile) AtMost(n int) *Profile {
	c := &Profile{processors: min(n, p.processors)}
	for _, s := range p.steps {
		s.free = min(s.free, n)
		if k := len(c.steps); k == 0 || c.steps[k-1].free != s.free {
			c.steps = append(c.steps, s)
		}
	}
	return c
}

// Arrival returns since when a job may be in line that is to start at an instant, where it fits: had it come earlier it
// would have started earlier. So it stays behind as few others as it can.
func (p *Profile) Arrival(at, length time.Duration, n int) time.Duration {
	came := p.steps[0].at
	for came < at {
		start, ok := p.Fit(came, length, n)
		if !ok || start >= at {
			return came
		}
		came = p.until(p.index(start), n) - length + time.Millisecond // by then there is no room there any more
	}
	return at
}

// until is when fewer than n processors are free for the first time after a step.
func (p *Profile) until(i, n int) time.Duration {
	for ; i < len(p.steps); i++ {
		if p.steps[i].free < n {
			return p.steps[i].at
		}
	}
	return Forever
}
