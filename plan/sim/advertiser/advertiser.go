// Package advertiser is a simulated site that offers slots: the holes in what its queue has planned. Whoever reserves
// one does what a backfilled job does, and delays nobody (Singh, PhD thesis, University of Southern California, 2008,
// chapter 3), as long as jobs run for as long as they have requested.
//
// The queue counts free processors and plans the starts of jobs (plan/sim/queue). Slots are made of that count level by
// level: the first processor's worth of it is free whenever any processor is, the second whenever two are. Levels that
// are free from the same instant to the same instant are one slot. So a task that fits the count for its whole time
// fits the slots on top of each other, and the count is the sum of the slots. The thesis pins jobs to processors
// instead and offers what that leaves, which is the same or worse: a hole may end there only because of where a job was
// put. Which processors a reservation gets is decided when it begins, as for any job.
//
// A slot whose end is the start of something that is planned is neither divisible nor extensible; one that has no end
// is both, and reaches to the horizon: two days, or behind the last planned end.
//
// With conservative backfilling and with FCFS a reservation in a slot delays no planned start. With EASY starts are a
// forecast, which other backfilling may change.
package advertiser

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// How far ahead slots without an end are advertised (Singh 2008, section 3.1).
const (
	Ahead  = 48 * time.Hour
	behind = 5 * time.Minute // the last planned end
)

// A Site is a simulated site with its prices. It is a slot.Source.
type Site struct {
	Name  string
	Queue *queue.Queue
	Price cost.Money // of a processor for an hour
}

// Offer returns the slots that are free of all that the queue has planned by now. It never fails.
func (s *Site) Offer() (slot.Offer, error) {
	profile, now := queue.Unplanned(s.Queue), s.Queue.Now()
	return slot.Offer{Site: s.Name, At: now, Processors: profile.Processors(),
		Slots: Levels(profile, now, s.Price, Ahead)}, nil
}

// Levels divides a profile into slots, from an instant on and as far ahead of it. A step up opens a slot of as many
// processors; a step down closes what was opened last, for what is free for the shortest time is what lies on top.
func Levels(profile *availability.Profile, now time.Duration, price cost.Money,
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

// Reserve takes pieces of slots that were offered, all of them or none. The error is of kind Unsatisfiable if a piece
// is not what the offer allows, and of kind Conflict, with a *slot.StaleError in it, if one can no longer be had
// without delaying somebody.
func (s *Site) Reserve(o slot.Offer, pieces []slot.Piece) error {
	free := queue.Unplanned(s.Queue)
	taken := map[int]int{} // :: slot → pieces
	for _, p := range pieces {
		if p.Slot < 0 || p.Slot >= len(o.Slots) {
			return corral.Errorf(corral.Unsatisfiable, "there is no slot %d in an offer of %d", p.Slot, len(o.Slots))
		}
		if _, err := o.Slots[p.Slot].Cost(p); err != nil {
			return err
		}
		if taken[p.Slot]++; taken[p.Slot] > 1 && !o.Slots[p.Slot].Divisible {
			return corral.Errorf(corral.Unsatisfiable, "slot %d is taken twice, and is not divisible", p.Slot)
		}
		least := 0
		if p.Start >= s.Queue.Now() {
			least = free.Least(p.Start, p.End())
		}
		if least < p.Processors {
			return corral.Errorf(corral.Conflict, "%w",
				&slot.StaleError{Site: s.Name, Piece: p, Free: least})
		}
		free.Take(p.Start, p.End(), p.Processors)
	}
	for _, p := range pieces {
		s.Queue.Reserve(p.Start, p.End(), p.Processors)
	}
	return nil
}
