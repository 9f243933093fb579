package corral

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// A Hold is a site's circuit breaker: it is open until Until, so that no attempt is submitted, and then half open (see
// Trial). The zero Hold blocks nothing.
type Hold struct {
	Since time.Time // end of the last attempt that came to nothing
	Until time.Time
	Why   string
}

// A Lack blocks the next attempt of one glidein because a condition other than its site's state is not met. The zero
// Lack blocks nothing.
type Lack struct {
	Why   string
	Final bool // the condition will never be met: the glidein fails
}

const (
	// HoldAfter is the number of consecutive attempts that must come to nothing.
	HoldAfter = 3

	// HoldHistory is the number of ended attempts with evidence about the site that are examined.
	HoldHistory = 8

	holdMin    = time.Minute // doubled for each further attempt that comes to nothing
	holdMax    = 10 * time.Minute
	usefulLife = time.Minute // an attempt that fails sooner came to nothing, with or without workers
)

// NewHold returns the hold that follows from the attempts of all glideins that ended last at a site, newest first. A
// site at which consecutive attempts come to nothing is broken, and submitting more attempts does not help (Juve 2012
// part 5.1, T5). The retries of single glideins do not detect this.
func NewHold(recent []Job) Hold {
	barren := 0
	var last Job
	for _, j := range recent {
		if !j.Tells() {
			continue
		}
		if !j.cameToNothing() {
			break
		}
		if barren++; barren == 1 {
			last = j
		}
	}
	if barren < HoldAfter {
		return Hold{}
	}
	return Hold{
		Since: last.EndedAt,
		Until: last.EndedAt.Add(min(holdMin<<(barren-HoldAfter), holdMax)),
		Why:   fmt.Sprintf("the last %d attempts at the site came to nothing, the last one %s", barren, last.inShort()),
	}
}

// Trial returns the reason why another attempt must wait at now although Until has passed, and the latest end of the
// wait; why is "" if the attempt need not wait. One attempt is let through as a trial. Others follow once the trial has
// registered workers; if the trial comes to nothing, the next Hold is longer. If a trial has no result within holdMax,
// another attempt is let through, so that a long queue does not block the site. live are the site's live attempts.
func (h Hold) Trial(now time.Time, live iter.Seq[*Job]) (why string, until time.Time) {
	if h.Since.IsZero() {
		return "", time.Time{}
	}
	trial := &Job{}
	for j := range live {
		switch {
		case j.Workers > 0 && j.StartedAt.After(h.Since):
			return "", time.Time{}
		case j.CreatedAt.After(h.Since) && !j.CreatedAt.Before(trial.CreatedAt):
			trial = j
		}
	}
	until = trial.CreatedAt.Add(holdMax)
	if trial.CreatedAt.IsZero() || !now.Before(until) || until.Sub(now) > 2*holdMax { // the clock was set back
		return "", time.Time{}
	}
	const said = "limit circuit breaker: %s; an attempt of glidein %d tests whether it works again"
	return fmt.Sprintf(said, h.Why, trial.Glidein), until
}

// Tells reports whether the end of an attempt is evidence about its site. It is not if a user ended the attempt, if the
// site refused the request permanently (the request's fault), or if it refused temporarily (the account's fault).
func (j Job) Tells() bool {
	switch j.Outcome {
	case OutcomeExpired, OutcomeLost, OutcomePreempted, OutcomeIdle:
		return true
	case OutcomeFailed:
		return j.Failure == "" && (j.Transient || !j.SubmittedAt.IsZero())
	}
	return false
}

// inShort describes the end of an attempt, briefly enough for use within another sentence.
func (j Job) inShort() string {
	const most = 160
	why := []rune(j.Reason)
	if len(why) > most {
		why = append(why[:most], '…')
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", j.Outcome, string(why)), ": ")
}

// cameToNothing reports whether an ended attempt registered no worker, or failed before it had run long enough to be
// useful.
func (j Job) cameToNothing() bool {
	switch j.Outcome {
	case OutcomeIdle:
		return false
	case OutcomeExpired:
		return j.Workers == 0
	}
	return j.Workers == 0 || j.EndedAt.Sub(j.StartedAt) < usefulLife
}
