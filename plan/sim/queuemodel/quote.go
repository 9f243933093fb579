package queuemodel

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/slot"
)

// Quote returns what a pilot would cost the other jobs if it started at an instant, in front of all waiting jobs: the
// additional waits of these, times their processors, at a price per processor and hour (as plan/sim/market). ok is
// false if running jobs or reservations leave no room for it then, or if a job could never start.
func (m *Model) Quote(start time.Duration, p Request, price cost.Money) (one slot.Slot, ok bool) {
	n := max(1, p.Hosts) * max(1, p.CPUs)
	if q := m.counted; q != nil {
		site := market.Market{Queue: q, Price: price}
		one, ok = site.At(q.Now()+start, p.Walltime, n)
		one.Start -= q.Now()
		return one, ok
	}
	b := of(m.seen)
	want := m.need(p)
	at, on := place(b.nodes, want, start)
	if on == nil || at != start {
		return slot.Slot{}, false
	}
	for _, n := range on {
		n.take(start, start+p.Walltime, want.of)
	}
	b.planAll()
	var work int64
	for i, j := range b.jobs {
		switch before := m.jobs[i].start; {
		case j.start < 0 && before >= 0:
			return slot.Slot{}, false
		case before >= 0:
			work += max(0, j.start-before).Milliseconds() * int64(j.Processors)
		}
	}
	return slot.Slot{Start: start, Length: p.Walltime, Processors: n, Price: price, Fee: slot.Charge(price, work)}, true
}

// Quotes returns quotes from an instant on, in order of time, up to and including the first without a fee, evenly
// thinned to at most most.
func (m *Model) Quotes(from time.Duration, p Request, price cost.Money, most int) (all []slot.Slot) {
	if q := m.counted; q != nil {
		site := market.Market{Queue: q, Price: price}
		all = site.Some(q.Now()+from, p.Walltime, max(1, p.Hosts)*max(1, p.CPUs), most)
		for i := range all {
			all[i].Start -= q.Now()
		}
		return all
	}
	for _, at := range thinned(m.instants(from, p), most) {
		if one, ok := m.Quote(at, p, price); ok {
			if all = append(all, one); one.Fee == 0 {
				break
			}
		}
	}
	return all
}

// instants returns the instants to quote, in order: the first at which running jobs leave room, each at which a waiting
// job is planned to start or to end, and the first at which the pilot fits beside all of them, which delays none.
func (m *Model) instants(from time.Duration, p Request) (all []time.Duration) {
	last, ok := m.Start(from, p)
	if first, has := of(m.seen).Start(from, p); has {
		all = append(all, first)
	}
	for _, j := range m.jobs {
		if j.start >= 0 {
			all = append(all, j.start, j.start+limit(j.QueuedJob))
		}
	}
	if ok {
		all = append(all, last)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(at time.Duration) bool { return at < from || ok && at > last })
}

// thinned leaves out every other instant, except the first and the last, until there are at most most, at least two.
func thinned(all []time.Duration, most int) []time.Duration {
	for len(all) > max(2, most) {
		half := all[:0:0]
		for i, at := range all {
			if i%2 == 0 || i == len(all)-1 {
				half = append(half, at)
			}
		}
		all = half
	}
	return all
}

// Nodes returns the number of nodes on which the queue is planned; 1 if processors are counted.
func (m *Model) Nodes() int { return max(1, len(m.nodes)) }

// Waiting returns the number of waiting jobs.
func (m *Model) Waiting() int { return len(m.seen.Waiting) }
