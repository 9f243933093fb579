// Package market is a simulated site that prices reservations by what they cost others: the wait of jobs in its queue
// that a reservation puts off (Singh, PhD thesis, University of Southern California, 2008, chapter 5). Any time can be
// reserved in which processors are free of running jobs and of other reservations; jobs that wait have no say, and
// their wait has a price. sim/advertiser offers what delays nobody, which is what has no fee here.
//
// The words: the fee of a reservation is the sum, over the jobs that wait, of how much later each starts because of it,
// times the job's processors, at the price of processor time (figure 22). Jobs that start earlier are not credited.
// Both plans are made anew, by the same policy from the same instant, and with requested times: what is not known is
// not in the price.
//
// Fees are marginal: each is what one reservation adds to those before it. So their sum is not the delay of all
// together, which Damage tells.
//
// The queue counts free processors and does not name them (plan/availability), so that a reservation behind all that is
// planned has no fee. The thesis's worked example pins jobs to processors, where that may fail; the tests have both.
package market

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Site is a simulated site with its prices. It is a slot.Market.
type Site struct {
	Name  string
	Queue *queue.Queue
	Price cost.Money // of a processor for an hour, also of the wait of others
}

// Trial implements slot.Market.
func (s *Site) Trial() slot.Market {
	trial := *s
	trial.Queue = s.Queue.Clone()
	return &trial
}

// At implements slot.Market.
func (s *Site) At(start, length time.Duration, processors int) (slot.Slot, bool) {
	return s.outlook().price(start, length, processors)
}

// From implements slot.Market.
func (s *Site) From(start, length time.Duration, processors int) []slot.Slot {
	o := s.outlook()
	var all []slot.Slot
	for _, at := range o.starts(max(start, s.Queue.Now()), length, processors) {
		if one, ok := o.price(at, length, processors); ok {
			all = append(all, one)
		}
	}
	return all
}

// Some are the offers of From up to the first without a fee, that among them, and so many at most, evenly from all:
// each takes a plan of the whole queue, and a queue of thousands of jobs has as many instants.
func (s *Site) Some(start, length time.Duration, processors, most int) []slot.Slot {
	o := s.outlook()
	start = max(start, s.Queue.Now())
	starts := o.starts(start, length, processors)
	// What fits beside all that is planned moves nothing.
	if free, ok := o.unplanned().Fit(start, length, processors); ok {
		i, _ := slices.BinarySearch(starts, free)
		starts = append(starts[:i:i], free)
	}
	for len(starts) > max(2, most) {
		half := starts[:0:0]
		for i, at := range starts {
			if i%2 == 0 || i == len(starts)-1 {
				half = append(half, at)
			}
		}
		starts = half
	}
	var all []slot.Slot
	for _, at := range starts {
		if one, ok := o.price(at, length, processors); ok {
			all = append(all, one)
		}
		if n := len(all); n > 0 && all[n-1].Fee == 0 {
			break
		}
	}
	return all
}

// Reserve implements slot.Market.
func (s *Site) Reserve(wanted slot.Slot) error {
	now, ok := s.At(wanted.Start, wanted.Length, wanted.Processors)
	if !ok {
		free := 0
		if wanted.Start >= s.Queue.Now() {
			free = queue.Look(s.Queue).Free.Least(wanted.Start, wanted.End())
		}
		piece := slot.Piece{Start: wanted.Start, Length: wanted.Length, Processors: wanted.Processors}
		return corral.Errorf(corral.Conflict, "%w", &slot.StaleError{Site: s.Name, Piece: piece, Free: free})
	}
	if now.Fee != wanted.Fee {
		return corral.Errorf(corral.Conflict, "the fee of %d processors of site %s from %s on is %s by now, and was %s",
			wanted.Processors, s.Name, wanted.Start, now.Fee, wanted.Fee)
	}
	s.Queue.Claim(wanted.Start, wanted.End(), wanted.Processors)
	return nil
}

// Damage is what the waits cost that jobs have in one queue beyond those in another, where the same jobs wait: how much
// later each would start, times its processors, at a price for an hour of a processor.
func Damage(before, after *queue.Queue, price cost.Money) cost.Money {
	b, a := queue.Look(before), queue.Look(after)
	work, _ := delay(b.Jobs, b.Starts(b.Free), a.Starts(a.Free))
	return slot.Charge(price, work)
}

// An outlook is what is planned at an instant: what prices are compared with.
type outlook struct {
	*Site
	queue.Outlook
	planned []time.Duration // of jobs that wait
}

func (s *Site) outlook() outlook {
	o := queue.Look(s.Queue)
	return outlook{s, o, o.Starts(o.Free)}
}

// unplanned is what running jobs, reservations and the jobs that wait leave, as they are planned.
func (o outlook) unplanned() *availability.Profile {
	free := o.Free.Clone()
	for i, j := range o.Jobs {
		if start := o.planned[i]; start >= 0 {
			free.Take(start, start+j.Requested, j.Processors)
		}
	}
	return free
}

// starts are the instants that are priced, in order: the first at which so much is free, if jobs that wait had no say,
// and each at which a job or a reservation starts or ends. So the earliest reservation that can be had is among them,
// and one without a fee: at the latest when all that is planned has ended.
func (o outlook) starts(from, length time.Duration, processors int) []time.Duration {
	all := []time.Duration{from}
	if first, ok := o.Free.Fit(from, length, processors); ok {
		all = append(all, first)
	}
	for at := range o.Free.Steps() {
		all = append(all, at)
	}
	for i, j := range o.Jobs {
		if start := o.planned[i]; start >= 0 {
			all = append(all, start, start+j.Requested)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(at time.Duration) bool { return at < from })
}

// price is the pricing algorithm (Singh 2008, figure 22).
func (o outlook) price(start, length time.Duration, processors int) (slot.Slot, bool) {
	if start < o.Queue.Now() || length <= 0 || processors < 1 || o.Free.Least(start, start+length) < processors {
		return slot.Slot{}, false
	}
	free := o.Free.Clone()
	free.Take(start, start+length, processors)
	work, ok := delay(o.Jobs, o.planned, o.Starts(free))
	return slot.Slot{Start: start, Length: length, Processors: processors, Price: o.Price,
		Fee: slot.Charge(o.Price, work)}, ok
}

// delay is by how much later jobs start in one plan than in another, times their processors, in
// milliseconds. ok is false if one would never start.
func delay(jobs []queue.Job, before, after []time.Duration) (work int64, ok bool) {
	for i, j := range jobs {
		switch {
		case after[i] < 0 && before[i] >= 0:
			return 0, false
		case before[i] >= 0:
			work += max(0, after[i]-before[i]).Milliseconds() * int64(j.Processors)
		}
	}
	return work, true
}
