// Package virtual reserves processors in plain batch queues, which do not support reservations: a job is submitted
// early enough to run by the wanted start with high probability, requests the time until the wanted end, and holds its
// processors idle until the start (Nurmi, Brevik and Wolski, VARQ: virtual advance reservations for queues, 2007;
// Singh, PhD thesis, University of Southern California, 2008, chapter 6). It works at any site, with a pilot as the
// job.
//
// The price of a virtual reservation is the idle time, which is known only when the job has started; if the job does
// not start in time, it costs nothing. A reservation sold by a site has a fee that is known in advance. Combine
// considers both kinds, and keeps the cheaper reservation (section 6.4).
//
// A Predictor estimates whether a job starts in time. Its predictions are for the current queue; a job that is
// submitted hours later meets a different queue. Therefore the odds of a plan are only an estimate; actual outcomes are
// simulated or observed.
package virtual

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Wanted is a number of processors to hold, from Start for Length.
type Wanted struct {
	Start, Length time.Duration
	Processors    int
}

// A Predictor returns the probability that a job with the given processors and walltime, submitted now, starts within a
// time (Singh 2008, equation 21).
type Predictor func(processors int, walltime, within time.Duration) float64

// A Submission is the planned submission of a job.
type Submission struct {
	At       time.Duration
	Walltime time.Duration
	Chance   float64 // probability that the job runs by the wanted start
}

// Increment is the interval between the submission times that Plan considers.
const Increment = 30 * time.Second

// Plan chooses when to submit the job: among the instants from now to the wanted start, one per Increment, it chooses
// the instant with the best odds, or the earliest such instant in case of a tie (Singh 2008, figure 33). The walltime
// lasts until the wanted end, however early the job starts; instants that require more than the queue's limit are
// skipped; a limit of 0 means no limit. If the job has no chance at any instant, the error is of kind Unsatisfiable and
// contains the reason.
func Plan(now time.Duration, w Wanted, limit time.Duration, odds Predictor) (best Submission, err error) {
	if w.Start <= now || w.Length <= 0 || w.Processors < 1 {
		return best, corral.Errorf(corral.Invalid,
			"%d processors for %s from %s on, but it is %s: there is nothing to plan",
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
			"the job would request more than %s, but the queue allows %s", w.Length, limit)
	case best.Chance == 0:
		return best, corral.Errorf(corral.Unsatisfiable,
			"no job with %d processors has ever started within %s", w.Processors, w.Start-now)
	}
	return best, nil
}

// Idle returns the cost of holding the processors from the start of the job to the wanted start, at a price per
// processor and hour. A job that did not start in time costs nothing, because it is cancelled.
func (w Wanted) Idle(started time.Duration, price cost.Money) cost.Money {
	return slot.Charge(price, max(0, w.Start-started).Milliseconds()*int64(w.Processors))
}

// A Choice is the decision between a sold and a virtual reservation for the same time.
type Choice string

// The choices.
const (
	Sold    Choice = "sold"    // the site's reservation, at its fee
	Virtual Choice = "virtual" // the job that holds the processors
	Neither Choice = "neither"
)

// A Held is the state of both reservations at the wanted start, or when the job starts.
type Held struct {
	Fee     cost.Money     // for the site's reservation
	Sold    bool           // a site's reservation exists
	Idle    cost.Money     // cost of the job's idle time
	Started bool           // the job runs by the wanted start
	Penalty ensemble.Share // share of the fee for cancelling the site's reservation
}

// Combine keeps the cheaper reservation (Singh 2008, figure 45). A reservation without a fee is kept, and no job is
// needed. If both exist, the job is kept if its idle time plus the penalty for the reservation costs at most the fee.
// The result is the cost in addition to the price of the processors' time itself, which is the same for both. If the
// site's reservation exists, the result never exceeds its fee.
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
