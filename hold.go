package corral

import (
	"fmt"
	"strings"
	"time"
)

// A Hold keeps attempts from a site: its circuit breaker is open until Until, and then half open: see Trial. The zero
// Hold keeps none.
type Hold struct {
	Since time.Time // when the last attempt came to nothing
	Until time.Time
	Why   string
}

// A Lack keeps the next attempt of one glidein: something that it needs beside its site is not there. The
// zero Lack keeps none.
type Lack struct {
	Why   string
	Final bool // nothing is done about it any more: the glidein fails
}

const (
	// HoldAfter is how many attempts in a row must come to nothing.
	HoldAfter = 3

	// HoldHistory is how many ended attempts that tell something are looked at.
	HoldHistory = 8

	holdMin    = time.Minute // doubled for each further attempt that comes to nothing
	holdMax    = 10 * time.Minute
	usefulLife = time.Minute // an attempt that fails sooner came to nothing, workers or not
)

// NewHold returns the hold that follows from the last attempts that ended at a site, of whatever
// glidein, the newest first. A site at which one attempt after the other comes to nothing is broken, and
// submitting more does not help (Juve 2012 part 5.1, T5). Each glidein's own retries do not see that.
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

// Trial returns why another attempt has to wait at now although Until is over, and until when at most; "" if it has
// not. One attempt is let through then. Others follow once it has registered workers; if it comes to nothing, the
// next Hold is a longer one. So that a long queue does not stop everything, another is let through for each holdMax
// that passes without an answer. live are the site's live attempts.
func (h Hold) Trial(now time.Time, live []Job) (why string, until time.Time) {
	if h.Since.IsZero() {
		return "", time.Time{}
	}
	var trial Job
	for _, j := range live {
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
	const said = "limit circuit breaker: %s; an attempt of glidein %d is to show whether it works again"
	return fmt.Sprintf(said, h.Why, trial.Glidein), until
}

// Tells reports whether the end of an attempt is evidence about its site. It is not if a user ended the attempt, if the
// site refused the request for good, which is due to the request, or for a while, which is due to the account.
func (j Job) Tells() bool {
	switch j.Outcome {
	case OutcomeExpired, OutcomeLost, OutcomePreempted, OutcomeIdle:
		return true
	case OutcomeFailed:
		return j.Failure == "" && (j.Transient || !j.SubmittedAt.IsZero())
	}
	return false
}

// inShort says how an attempt ended in words that have room in another sentence.
func (j Job) inShort() string {
	const most = 160
	why := []rune(j.Reason)
	if len(why) > most {
		why = append(why[:most], '…')
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", j.Outcome, string(why)), ": ")
}

// cameToNothing reports whether an ended attempt registered no worker, or failed before it had lived long enough to be
// of use.
func (j Job) cameToNothing() bool {
	switch j.Outcome {
	case OutcomeIdle:
		return false
	case OutcomeExpired:
		return j.Workers == 0
	}
	return j.Workers == 0 || j.EndedAt.Sub(j.StartedAt) < usefulLife
}
