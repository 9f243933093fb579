package main

import (
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/slot"
)

// idle returns the cost of holding the processors from the start of the job to the wanted start, at a price per
// processor and hour. A job that did not start in time costs nothing, because it is cancelled.
func idle(w virtual.Wanted, started time.Duration, price cost.Money) cost.Money {
	return slot.Charge(price, max(0, w.Start-started).Milliseconds()*int64(w.Processors))
}

// A choice is the decision between a sold and a virtual reservation for the same time.
type choice string

// The choices.
const (
	keepSold    choice = "sold"    // the site's reservation, at its fee
	keepVirtual choice = "virtual" // the job that holds the processors
	keepNeither choice = "neither"
)

// A held is the state of both reservations at the wanted start, or when the job starts.
type held struct {
	Fee     cost.Money // for the site's reservation
	Sold    bool       // a site's reservation exists
	Idle    cost.Money // cost of the job's idle time
	Started bool       // the job runs by the wanted start
	Penalty plan.Share // share of the fee for cancelling the site's reservation
}

// combine keeps the cheaper reservation (Singh 2008, figure 45). A reservation without a fee is kept, and no job is
// needed. If both exist, the job is kept if its idle time plus the penalty for the reservation costs at most the fee.
// The result is the cost in addition to the price of the processors' time itself, which is the same for both. If the
// site's reservation exists, the result never exceeds its fee.
func combine(h held) (choice, cost.Money) {
	penalty := h.Penalty.Part(h.Fee)
	switch {
	case h.Sold && (h.Fee == 0 || !h.Started || h.Idle.Plus(penalty) > h.Fee):
		return keepSold, h.Fee
	case h.Sold:
		return keepVirtual, h.Idle + penalty
	case h.Started:
		return keepVirtual, h.Idle
	}
	return keepNeither, 0
}
