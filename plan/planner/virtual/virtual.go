// Package virtual reserves processors in plain batch queues, which do not support reservations: a job is submitted
// early enough to run by the wanted start with high probability, requests the time until the wanted end, and holds its
// processors idle until the start (Nurmi, Brevik and Wolski, VARQ: virtual advance reservations for queues, 2007;
// Singh, PhD thesis, University of Southern California, 2008, chapter 6). It works at any site, with a pilot as the
// job.
//
// The price of a virtual reservation is the idle time, which is known only when the job has started; if the job does
// not start in time, it costs nothing.
//
// A Predictor estimates whether a job starts in time. Its predictions are for the current queue; a job that is
// submitted hours later meets a different queue. Therefore the odds of a plan are only an estimate; actual outcomes are
// simulated or observed.
package virtual

import (
	"time"

	"github.com/corral-pilot/corral"
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
