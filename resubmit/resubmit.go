// Package resubmit decides whether and when a finished glidein is submitted again.
//
// Policy.Next decides. Its decision is a pure function of a policy, the results of the attempts so far, and now; its
// result is a verdict. Only an attempt that expired (its walltime ended) counts for the policy. An attempt that was
// lost or failed transiently is retried with back-off. An attempt that the site refused because of the account, and not
// of the request, is repeated after a pause without limit. No attempt follows any other end: an idle pilot must not
// come back, or an empty cluster would cause a storm of submissions.
//
// The rule is that of the original system (Juve 2012, §2.7.2), with its off-by-one made explicit: a limit of N means N
// resubmissions, N+1 submissions in all.
package resubmit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Mode limits how often an expired attempt is followed by another.
type Mode string

const (
	Never   Mode = "never"
	Times   Mode = "times"   // at most Limit times
	Until   Mode = "until"   // before Deadline
	Forever Mode = "forever" // as long as the site exists
)

// A Policy is the requested resubmission. The zero value means never, without retries.
type Policy struct {
	Mode     Mode      `json:"mode"`
	Limit    int       `json:"limit,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	Retries  int       `json:"retries"` // for consecutive attempts that were lost or failed transiently
}

// Parse reads a value of --resubmit: never, N, until=TIME (RFC 3339) or forever.
func Parse(s string) (Policy, error) {
	switch s {
	case "", string(Never):
		return Policy{Mode: Never}, nil
	case string(Forever):
		return Policy{Mode: Forever}, nil
	}
	if at, ok := strings.CutPrefix(s, "until="); ok {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return Policy{}, fmt.Errorf("%q is not an RFC 3339 time", at)
		}
		t = t.UTC()
		if t.Year() < 1970 || t.Year() > 9999 { // in another zone its year may be one that RFC 3339 cannot express
			return Policy{}, fmt.Errorf("%q is outside the years 1970 to 9999", at)
		}
		return Policy{Mode: Until, Deadline: t}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return Policy{}, fmt.Errorf("%q must be never, a number, until=TIME or forever", s)
	}
	if n == 0 {
		return Policy{Mode: Never}, nil
	}
	return Policy{Mode: Times, Limit: n}, nil
}

// String formats p for Parse, without the retries.
func (p Policy) String() string {
	switch p.Mode {
	case Times:
		return strconv.Itoa(p.Limit)
	case Until:
		return "until=" + p.Deadline.Format(time.RFC3339Nano)
	case Forever:
		return string(Forever)
	}
	return string(Never)
}

// Validate reports the first inconsistency in p.
func (p Policy) Validate() error {
	switch {
	case p.Retries < 0:
		return fmt.Errorf("retries: %d is negative", p.Retries)
	case p.Mode == Times && p.Limit < 1:
		return fmt.Errorf("limit: %d, want at least 1", p.Limit)
	case p.Mode != Times && p.Limit != 0:
		return fmt.Errorf("limit: only for mode %s", Times)
	case p.Mode == Until && p.Deadline.IsZero():
		return fmt.Errorf("deadline: missing for mode %s", Until)
	case p.Mode != Until && !p.Deadline.IsZero():
		return fmt.Errorf("deadline: only for mode %s", Until)
	}
	switch p.Mode {
	case "", Never, Times, Until, Forever:
		return nil
	}
	return fmt.Errorf("mode: %q must be one of %s, %s, %s, %s", p.Mode, Never, Times, Until, Forever)
}

// A Result classifies an ended attempt for the policy.
type Result string

const (
	Expired   Result = "expired"        // used its whole walltime
	Transient Result = "transient"      // lost, preempted or failed transiently
	NoRoom    Result = "quota"          // refused because the user has reached a limit
	NotKnown  Result = "authentication" // refused because the site does not know the user
	Finished  Result = "finished"       // idle, drained or removed: no further attempt is wanted
	Broken    Result = "broken"         // failed in a way that a retry cannot fix
)

// A Verdict says what follows the last ended attempt.
type Verdict string

const (
	Again  Verdict = "again"  // submit another attempt, not before the time given
	Finish Verdict = "finish" // the glidein is finished
	Fail   Verdict = "fail"   // the glidein has failed
)

// Back-off after consecutive transient failures: BackoffMin, doubled for each further one up to BackoffMax, plus jitter
// of up to half of that.
const (
	BackoffMin = 2 * time.Second
	BackoffMax = 10 * time.Minute
)

// Pauses after refusals that are not the attempt's fault: room appears when other jobs end, and a user is accepted
// again after a person has helped. They use no retry, however many there are, and jitter lengthens each by up to half.
const (
	RoomPause = 5 * time.Minute
	HelpPause = 10 * time.Minute
)

// An Attempt is an ended attempt.
type Attempt struct {
	EndedAt time.Time
	Result  Result
}

// A History summarizes the ended attempts for a policy. The zero value has none.
type History struct {
	Expired  int     // total number that expired
	Failures int     // consecutive Transient attempts at the end
	Last     Attempt // Result is empty if there was none
}

// Then returns the history with a further attempt at its end.
func (h History) Then(a Attempt) History {
	h.Last = a
	switch a.Result {
	case Expired:
		h.Expired++
		h.Failures = 0
	case Transient:
		h.Failures++
	default:
		h.Failures = 0
	}
	return h
}

// Next returns the verdict on history at now, the earliest time of the next attempt if the verdict is Again (zero: at
// once), and the rule that decided. The caller supplies jitter in [0,1) so that simulations are reproducible. An empty
// history gives Again at once.
func (p Policy) Next(history History, now time.Time, jitter float64) (v Verdict, notBefore time.Time, why string) {
	switch history.Last.Result {
	case "":
		return Again, time.Time{}, "first attempt"
	case Expired:
		return p.afterExpiry(history.Expired, now)
	case Transient:
		failures := history.Failures
		if failures > p.Retries {
			why = fmt.Sprintf("%d attempts in a row failed, %d retries allowed", failures, p.Retries)
			return Fail, time.Time{}, why
		}
		return Again, history.after(backoff(failures, jitter), now), fmt.Sprintf("retry %d of %d", failures, p.Retries)
	case NoRoom:
		return Again, history.after(spread(RoomPause, jitter), now), "once there is room, without a retry"
	case NotKnown:
		return Again, history.after(spread(HelpPause, jitter), now), "once the site knows the user, without a retry"
	case Finished:
		return Finish, time.Time{}, "not wanted any longer"
	}
	return Fail, time.Time{}, "failed in a way that a retry cannot fix"
}

// after returns the time at the given pause after the last end.
func (h History) after(pause time.Duration, now time.Time) time.Time {
	at := h.Last.EndedAt.Add(pause)
	if at.Sub(now) > 2*BackoffMax { // no pause is that long: the clock was set back
		return now
	}
	return at
}

// afterExpiry returns the verdict after an attempt used its whole walltime, the only end to which the mode applies.
// expired includes that attempt; the first attempt is not a resubmission.
func (p Policy) afterExpiry(expired int, now time.Time) (Verdict, time.Time, string) {
	switch p.Mode {
	case Forever:
		return Again, time.Time{}, "resubmit forever"
	case Times:
		if expired <= p.Limit {
			return Again, time.Time{}, fmt.Sprintf("resubmission %d of %d", expired, p.Limit)
		}
		return Finish, time.Time{}, fmt.Sprintf("all %d resubmissions used", p.Limit)
	case Until:
		if now.Before(p.Deadline) {
			return Again, time.Time{}, "resubmit until " + p.Deadline.Format(time.RFC3339)
		}
		return Finish, time.Time{}, "past " + p.Deadline.Format(time.RFC3339)
	}
	return Finish, time.Time{}, "no resubmission requested"
}

// backoff returns the pause after the given number of consecutive transient failures: 2 s, 4 s, 8 s and so on, plus
// jitter, so that glideins that failed together do not return together.
func backoff(failures int, jitter float64) time.Duration {
	doublings := min(failures-1, 16) // 2 s << 16 is far above the maximum, and does not overflow
	return spread(min(BackoffMin<<doublings, BackoffMax), jitter)
}

// spread lengthens a pause by up to half of it.
func spread(d time.Duration, jitter float64) time.Duration {
	return d + time.Duration(jitter*float64(d)/2)
}
