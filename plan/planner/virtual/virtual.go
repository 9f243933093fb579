// Package virtual reserves processors on plain batch queues, which sell no reservations: a job is submitted so early
// that it most probably runs by the wanted start, asks for as long as from now to the wanted end, and holds its
// processors idle until the start (Nurmi, Brevik and Wolski, VARQ: virtual advance reservations for queues, 2007;
// Singh, PhD thesis, University of Southern California, 2008, chapter 6). It works on any site, with a pilot for the
// job.
//
// Its price is the time for which it is held idle, known only when the job has started; it may also fail, and then
// costs nothing. A reservation that a site sells costs a fee that is known beforehand. Combine has both, and keeps the
// cheaper one (section 6.4).
//
// Whether a job starts in time is predicted. Predictions are of today's queue: a job that is submitted in some hours
// meets another one. So the odds of a plan are an argument for it, and no outcome; outcomes are simulated or lived.
package virtual

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Wanted is what is to be held: processors for a time from an instant on.
type Wanted struct {
	Start, Length time.Duration
	Processors    int
}

// A Predictor returns how probable it is that a job of so many processors and a walltime, submitted now, starts within
// some time (Singh 2008, equation 21).
type Predictor func(processors int, walltime, within time.Duration) float64

// A Submission is a job to be submitted.
type Submission struct {
	At       time.Duration
	Walltime time.Duration
	Chance   float64 // that it runs by the wanted start
}

// Increment is between two instants of which it is asked whether to submit then.
const Increment = 30 * time.Second

// Plan chooses when to submit the job: of the instants from now until the wanted start, each an increment after
// another, the one with the best odds, and of equal ones the earliest (Singh 2008, figure 33). Its walltime lasts until
// the wanted end, however early it starts; instants from which that is more than the queue's limit are passed over,
// where 0 is no limit. If a job has no chance at any of them the error is of kind Unsatisfiable, and says why.
func Plan(now time.Duration, w Wanted, limit time.Duration, odds Predictor) (best Submission, err error) {
	if w.Start <= now || w.Length <= 0 || w.Processors < 1 {
		return best, corral.Errorf(corral.Invalid,
			"%d processors for %s from %s on, and it is %s: nothing is left to plan",
			w.Processors, w.Length, w.Start, now)
	}
	over := true
	for at := now; at < w.Start; at += Increment {
		walltime := w.Length + w.Start - at
		if limit > 0 && walltime > limit {
			continue
		}
		over = false
		if chance := odds(w.Processors, walltime, w.Start-at); chance > best.Chance {
			best = Submission{at, walltime, chance}
		}
	}
	switch {
	case over:
		return best, corral.Errorf(corral.Unsatisfiable,
			"the job would ask for more than %s, and the queue allows %s", w.Length, limit)
	case best.Chance == 0:
		return best, corral.Errorf(corral.Unsatisfiable,
			"no job of %d processors started so soon that one would run in %s", w.Processors, w.Start-now)
	}
	return best, nil
}

// Idle is what it costs to hold the processors from when a job started until the wanted start, at a price of a
// processor for an hour. One that did not start in time costs nothing: it is cancelled.
func (w Wanted) Idle(started time.Duration, price cost.Money) cost.Money {
	return slot.Charge(price, max(0, w.Start-started).Milliseconds()*int64(w.Processors))
}

// A Choice is what is kept of a sold and a virtual reservation of the same time.
type Choice string

// The choices.
const (
	Sold    Choice = "sold"    // the site's, at its fee
	Virtual Choice = "virtual" // the job that holds its processors
	Neither Choice = "neither"
)

// A Held is how both stand at the wanted start, or when the job starts.
type Held struct {
	Fee     cost.Money     // of the site's reservation
	Sold    bool           // there is one
	Idle    cost.Money     // of the job
	Started bool           // it runs by the wanted start
	Penalty ensemble.Share // of the fee, for cancelling the site's reservation
}

// Combine keeps the cheaper one (Singh 2008, figure 45). A reservation without a fee is kept, and no job is needed.
// With both the job is kept if its idle time and the penalty for the reservation come to no more than the fee: of equal
// ones, too. What is paid is beyond the price of the processors' time itself, which is the same for both: never more
// than the fee, where there is a reservation.
func Combine(h Held) (Choice, cost.Money) {
	penalty := h.Penalty.Part(h.Fee)
	switch {
	case h.Sold && (h.Fee == 0 || !h.Started || h.Idle.Plus(penalty) > h.Fee):
		return Sold, h.Fee
	case h.Sold:
		return Virtual, h.Idle + penalty
	case h.Started:
		return Virtual, h.Idle
	}
	return Neither, 0
}
