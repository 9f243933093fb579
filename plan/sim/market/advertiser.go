package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// Ahead is the minimum time from now to the advertised end of a slot that has no end of its own (Singh 2008, section
// 3.1).
const (
	Ahead  = 48 * time.Hour
	behind = 5 * time.Minute // minimum time from the last planned end to that end
)

// An Advertiser is a simulated site that offers slots, the holes in the plan of its queue. It is a slot.Source. A
// reservation of a slot acts like a backfilled job and delays no other job (Singh, PhD thesis, University of Southern
// California, 2008, chapter 3), as long as jobs run for their requested times.
//
// The queue counts free processors and plans the starts of jobs (plan/sim/queue). Slots are made from that count level
// by level: the first level is free whenever at least one processor is, the second whenever at least two are, and so
// on. Levels that are free from the same instant to the same instant form one slot. So a task for which the count is
// high enough for its whole time fits into slots of adjacent levels, and the processors of the slots add up to the
// count. The thesis instead pins jobs to processors and offers the remaining holes, which are the same or worse: a hole
// may end merely because of the choice of processors for a job. Here the processors of a reservation are chosen when it
// begins, as for any job.
//
// A slot that ends at a planned start is neither divisible nor extensible. A slot without an end is both, and lasts
// until the horizon: two days ahead, or shortly after the last planned end.
//
// With FCFS and conservative backfilling, a reservation in a slot delays no planned start. With EASY, starts are a
// forecast, which other backfilling may change.
type Advertiser struct {
	Name  string
	Queue *queue.Queue
	Price cost.Money // per processor and hour
}

// Offer returns the slots that are free according to the queue's current plan. It never fails.
func (s *Advertiser) Offer() (slot.Offer, error) {
	profile, now := queue.Unplanned(s.Queue), s.Queue.Now()
	return slot.Offer{Site: s.Name, At: now, Processors: profile.Processors(),
		Slots: Levels(profile, now, s.Price, Ahead)}, nil
}

// Levels divides a profile into slots, from now until the horizon: ahead later, or shortly after the last planned end
// if that is later still. A step up opens a slot with the additional processors; a step down closes the slots opened
// last, because the top levels are free for the shortest time.
func Levels(profile *slot.Profile, now time.Duration, price cost.Money,
	ahead time.Duration) []slot.Slot {
	type open struct {
		since      time.Duration
		processors int
	}
	var stack []open
	var all []slot.Slot
	free, last := 0, now
	for at, n := range profile.Steps() {
		at = max(at, now)
		if last = at; n > free {
			stack = append(stack, open{at, n - free})
		}
		for left := free - n; left > 0; {
			top := &stack[len(stack)-1]
			k := min(left, top.processors)
			if at > top.since {
				all = append(all, slot.Slot{Start: top.since, Length: at - top.since, Processors: k, Price: price})
			}
			left -= k
			if top.processors -= k; top.processors == 0 {
				stack = stack[:len(stack)-1]
			}
		}
		free = n
	}
	horizon := max(now+ahead, last+behind)
	for _, o := range stack {
		all = append(all, slot.Slot{Start: o.since, Length: horizon - o.since, Processors: o.processors, Price: price,
			Divisible: true, Extensible: true})
	}
	slices.SortStableFunc(all, func(a, b slot.Slot) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End(), b.End()))
	})
	return all
}
