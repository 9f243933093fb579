// Package market simulates sites that sell processors in advance. A Market prices reservations by their cost to others:
// the additional wait of jobs in its queue (Singh, PhD thesis, University of Southern California, 2008, chapter 5).
// Processors can be reserved whenever no running job and no other reservation holds them; waiting jobs are delayed, and
// their delay has a price. The slots that an Advertiser offers delay no job; here they have no fee.
//
// The fee of a reservation is the sum, over the waiting jobs, of each job's delay times its processors, at the price of
// processor time (figure 22). Jobs that start earlier are not credited. The plans with and without the reservation are
// both made from scratch, by the same policy at the same instant, with requested times: the price does not include
// unknown events.
//
// Fees are marginal: each reflects the effect of one reservation in addition to the earlier ones. So the sum of the
// fees is not the price of the total delay, which Damage returns.
//
// The queue counts free processors and does not identify them (plan/slot), so a reservation after everything
// planned has no fee. In the worked example of the thesis, jobs are pinned to processors, so such a reservation may
// have a fee; the tests cover both cases.
package market

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Market is a simulated site that prices a reservation by the delay of the jobs in its queue. Reservations must be
// taken as a whole. Offers from the same or different calls are alternatives, because they use the same processors.
// Numbers of processors and lengths must be positive.
type Market struct {
	Name  string
	Queue *queue.Queue
	Price cost.Money // per processor and hour, also for the waits of others
}

// At prices the reservation that starts at an instant (Singh 2008, equation 17). ok is false if it is not available.
func (s *Market) At(start, length time.Duration, processors int) (slot.Slot, bool) {
	return s.outlook().price(start, length, processors)
}

// From prices reservations that start at an instant or later (equation 19), in order of time: the earliest reservation
// that is available, and one at each instant at which a job or a reservation starts or ends. If start is the current
// time, this is equation 18.
func (s *Market) From(start, length time.Duration, processors int) []slot.Slot {
	o := s.outlook()
	var all []slot.Slot
	for _, at := range o.starts(max(start, s.Queue.Now()), length, processors) {
		if one, ok := o.price(at, length, processors); ok {
			all = append(all, one)
		}
	}
	return all
}

// Some returns the offers of From up to and including the first without a fee, evenly thinned to at most most offers:
// each offer requires a plan of the whole queue, and for a queue with thousands of jobs From considers thousands of
// instants.
func (s *Market) Some(start, length time.Duration, processors, most int) []slot.Slot {
	o := s.outlook()
	start = max(start, s.Queue.Now())
	starts := o.starts(start, length, processors)
	// A reservation that fits in addition to everything planned delays nothing.
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

// Damage returns the cost of the additional waits in the queue after compared with the queue before, which has the same
// waiting jobs: the delay of each job times its processors, at a price per processor and hour.
func Damage(before, after *queue.Queue, price cost.Money) cost.Money {
	b, a := queue.Look(before), queue.Look(after)
	work, _ := delay(b.Jobs, b.Starts(b.Free), a.Starts(a.Free))
	return slot.Charge(price, work)
}

// An outlook is the plan at an instant; fees are computed by comparing other plans with it.
type outlook struct {
	*Market
	queue.Outlook
	planned []time.Duration // starts of the waiting jobs
}

func (s *Market) outlook() outlook {
	o := queue.Look(s.Queue)
	return outlook{s, o, o.Starts(o.Free)}
}

// unplanned returns the profile of processors that neither running jobs nor reservations nor waiting jobs at their
// planned starts occupy.
func (o outlook) unplanned() *slot.Profile {
	var planned []slot.Change
	for i, j := range o.Jobs {
		if start := o.planned[i]; start >= 0 {
			planned = append(planned, slot.Change{From: start, To: start + j.Requested, Free: -j.Processors})
		}
	}
	return o.Free.With(planned)
}

// starts returns the instants to price, in order: from itself, the first instant at which enough processors are free if
// waiting jobs are ignored, and each instant at which a job or a reservation starts or ends. They include the start of
// the earliest possible reservation and of one without a fee, which is possible at the latest after the end of
// everything planned.
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

// price implements the pricing algorithm (Singh 2008, figure 22).
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

// delay returns the sum, over all jobs, of the delay between two plans in milliseconds times the job's processors. ok
// is false if a job would never start because of the second plan.
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
