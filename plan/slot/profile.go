package slot

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"
)

// Forever is the end of an interval without end.
const Forever time.Duration = math.MaxInt64

// A Profile is a step function of time: the number of a machine's processors that are free at each instant from now on,
// according to the known running jobs, planned starts and reservations. Use NewProfile to make one. Backfilling
// schedulers plan with it (Mu'alem and Feitelson, Utilization, predictability, workloads, and user runtime estimates in
// scheduling the IBM SP2 with backfilling, IEEE TPDS 12(6), 2001, §2.1), and schedulers advertise it so that its holes
// can be reserved.
//
// A job of n processors and a given length fits at an instant if n processors are free from then on for that length.
// Processors are counted, not identified; the profile does not show whether a job could stay on the same processors.
//
// The invariant: the free processors of a step are between 0 and the machine's total, and neighbouring steps differ. If
// the owner calls Forget, the size of a profile depends on the planned jobs only, not on the time that has passed.
type Profile struct {
	processors int
	steps      []step // in order of time; the last step has no end
}

// A step is the number of free processors from an instant until the next step.
type step struct {
	at   time.Duration
	free int
}

// NewProfile returns the profile of a machine whose processors are all free from an instant on.
func NewProfile(processors int, from time.Duration) *Profile {
	return &Profile{processors: processors, steps: []step{{from, processors}}}
}

// Processors returns the size of the machine.
func (p *Profile) Processors() int { return p.processors }

// Clone returns an independent copy.
func (p *Profile) Clone() *Profile { return &Profile{p.processors, slices.Clone(p.steps)} }

// Free returns the number of processors that are free at an instant, which must not be before the last Forget.
func (p *Profile) Free(at time.Duration) int { return p.steps[p.index(at)].free }

// Least returns the minimum number of free processors in [from, to) or, for an empty interval, the number of processors
// that are free at from.
func (p *Profile) Least(from, to time.Duration) int {
	i := p.index(from)
	least := p.steps[i].free
	for i++; i < len(p.steps) && p.steps[i].at < to; i++ {
		least = min(least, p.steps[i].free)
	}
	return least
}

// Fit returns the earliest instant, not before from, at which n processors are free for the given length. ok is false
// if there is no such instant, because the machine is too small or because processors are taken forever.
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

// Take reserves n processors in [from, to). It panics if fewer are free, which is a bug in the caller.
func (p *Profile) Take(from, to time.Duration, n int) { p.change(from, to, -n) }

// Give releases reserved processors. It panics if fewer were reserved, which is a bug in the caller.
func (p *Profile) Give(from, to time.Duration, n int) { p.change(from, to, n) }

// Forget drops the part of the profile before an instant.
func (p *Profile) Forget(before time.Duration) {
	i := p.index(before)
	p.steps = slices.Delete(p.steps, 0, i)
	p.steps[0].at = max(p.steps[0].at, before)
}

// Steps yields the beginning of each step and its number of free processors, in order of time. The last step has no
// end.
func (p *Profile) Steps() iter.Seq2[time.Duration, int] {
	return func(yield func(time.Duration, int) bool) {
		for _, s := range p.steps {
			if !yield(s.at, s.free) {
				return
			}
		}
	}
}

// index returns the step at an instant, or the first step for earlier instants.
func (p *Profile) index(at time.Duration) int {
	return max(0, sort.Search(len(p.steps), func(i int) bool { return p.steps[i].at > at })-1)
}

// end returns the end of a step.
func (p *Profile) end(i int) time.Duration {
	if i+1 < len(p.steps) {
		return p.steps[i+1].at
	}
	return Forever
}

// after returns the end of an interval, at most Forever.
func after(at, length time.Duration) time.Duration {
	if at > Forever-length {
		return Forever
	}
	return at + length
}

// change adds to the number of free processors in [from, to).
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
			panic(fmt.Sprintf("slot: %d of %d processors are free at %s", free, p.processors, p.steps[i].at))
		}
	}
	if last < len(p.steps) {
		p.join(last)
	}
	p.join(first)
}

// split ensures that a step begins at the given instant, which must not be before the first step, and returns the index
// of that step.
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

// From returns the profile from an instant on, with that instant as its 0.
func (p *Profile) From(now time.Duration) *Profile {
	c := p.Clone()
	c.Forget(now)
	for i := range c.steps {
		c.steps[i].at -= now
	}
	return c
}

// AtMost returns the profile limited to n processors.
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

// Arrival returns the earliest submit time of a job that is to start at an instant at which it fits: if the job were
// submitted any earlier, it would start earlier. The earliest such time is used so that as few jobs as possible are
// ahead of the job.
func (p *Profile) Arrival(at, length time.Duration, n int) time.Duration {
	came := p.steps[0].at
	for came < at {
		start, ok := p.Fit(came, length, n)
		if !ok || start >= at {
			return came
		}
		came = p.until(p.index(start), n) - length + time.Millisecond // by then the earlier place is gone
	}
	return at
}

// until returns the first instant in or after step i when fewer than n processors are free.
func (p *Profile) until(i, n int) time.Duration {
	for ; i < len(p.steps); i++ {
		if p.steps[i].free < n {
			return p.steps[i].at
		}
	}
	return Forever
}
