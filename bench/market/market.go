// Package market simulates sites that sell processors in advance (Singh, PhD thesis, University of Southern California,
// 2008, chapters 3 and 5): package plan/sim/market computes their offers and prices, and here they are reserved.
package market

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Seller is a site that prices any reservation, even if other jobs have to wait for it (Singh 2008, chapter 5). It
// offers slots that must be taken as a whole, at a fee that compensates for the waits of other jobs. Slots from the
// same or different calls are alternatives, because they use the same processors; after a reservation, query again.
// Numbers of processors and lengths must be positive.
type Seller interface {
	// At prices the reservation that starts at an instant (equation 17). ok is false if it is not available.
	At(start, length time.Duration, processors int) (s slot.Slot, ok bool)

	// From prices reservations that start at an instant or later (equation 19), in order of time: the earliest
	// reservation that is available, and one at each instant at which a job starts or ends. If start is the current
	// time, this is equation 18.
	From(start, length time.Duration, processors int) []slot.Slot

	// Reserve takes a slot at the quoted fee. If the slot has been taken, the error is of kind Conflict and
	// wraps a *StaleError; if only the fee has changed, it is of kind Conflict alone. In both cases nothing is
	// reserved.
	Reserve(s slot.Slot) error

	// Trial returns a copy for trial reservations.
	Trial() Seller
}

// A Market is a Seller.
type Market struct{ market.Market }

// New returns a market at a price per processor and hour, also for the waits of others.
func New(name string, q *queue.Queue, price cost.Money) *Market {
	return &Market{market.Market{Name: name, Queue: q, Price: price}}
}

// Trial implements Seller.
func (s *Market) Trial() Seller {
	return New(s.Name, s.Queue.Clone(), s.Price)
}

// Reserve implements Seller.
func (s *Market) Reserve(wanted slot.Slot) error {
	now, ok := s.At(wanted.Start, wanted.Length, wanted.Processors)
	if !ok {
		free := 0
		if wanted.Start >= s.Queue.Now() {
			free = queue.Look(s.Queue).Free.Least(wanted.Start, wanted.End())
		}
		piece := slot.Piece{Start: wanted.Start, Length: wanted.Length, Processors: wanted.Processors}
		return corral.Errorf(corral.Conflict, "%w", &StaleError{Site: s.Name, Piece: piece, Free: free})
	}
	if now.Fee != wanted.Fee {
		return corral.Errorf(corral.Conflict, "the fee of %d processors of site %s from %s on has changed to %s from "+
			"%s", wanted.Processors, s.Name, wanted.Start, now.Fee, wanted.Fee)
	}
	s.Queue.Claim(wanted.Start, wanted.End(), wanted.Processors)
	return nil
}

// Damage returns the cost of the additional waits in the queue after compared with the queue before.
func Damage(before, after *queue.Queue, price cost.Money) cost.Money {
	return market.Damage(before, after, price)
}

// An Advertiser is a site whose advertised slots can be reserved.
type Advertiser struct{ market.Advertiser }

// Advertise returns an advertiser at a price per processor and hour.
func Advertise(name string, q *queue.Queue, price cost.Money) *Advertiser {
	return &Advertiser{market.Advertiser{Name: name, Queue: q, Price: price}}
}

// Reserve reserves the given pieces of offered slots, either all of them or none. The error is of kind Unsatisfiable if
// the offer does not allow a piece; it is of kind Conflict and wraps a *StaleError if a piece can no longer be
// reserved without delaying a job.
func (s *Advertiser) Reserve(o slot.Offer, pieces []slot.Piece) error {
	free := queue.Unplanned(s.Queue)
	taken := map[int]int{} // :: slot → number of pieces
	for _, p := range pieces {
		if p.Slot < 0 || p.Slot >= len(o.Slots) {
			return corral.Errorf(corral.Unsatisfiable, "slot %d does not exist: the offer has %d", p.Slot, len(o.Slots))
		}
		if _, err := o.Slots[p.Slot].Cost(p); err != nil {
			return err
		}
		if taken[p.Slot]++; taken[p.Slot] > 1 && !o.Slots[p.Slot].Divisible {
			return corral.Errorf(corral.Unsatisfiable, "slot %d is taken twice, but is not divisible", p.Slot)
		}
		least := 0
		if p.Start >= s.Queue.Now() {
			least = free.Least(p.Start, p.End())
		}
		if least < p.Processors {
			return corral.Errorf(corral.Conflict, "%w",
				&StaleError{Site: s.Name, Piece: p, Free: least})
		}
		free.Take(p.Start, p.End(), p.Processors)
	}
	for _, p := range pieces {
		s.Queue.Reserve(p.Start, p.End(), p.Processors)
	}
	return nil
}

// A StaleError reports that a piece of an offer has been taken because the site's plan has changed. None of the
// pieces requested with it was reserved. The caller should get a new offer and make a new plan.
type StaleError struct {
	Site  string
	Piece slot.Piece
	Free  int // processors that are now free during the whole piece
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("slot %d of site %s is stale: of %d processors from %s to %s, %d are still free", e.Piece.Slot,
		e.Site, e.Piece.Processors, e.Piece.Start, e.Piece.End(), e.Free)
}
