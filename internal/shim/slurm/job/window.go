package job

// sacct shows the jobs of a span of time. What its options say of it is a moment to whoever asks for states, since
// those are what jobs are in at one time.

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// window is the time of which jobs are shown. Without -S it begins with the day, and without -E it ends now. For who
// asks for states, it is the one moment that is said, or now.
func (a *Acct) window(now time.Time) (from, to time.Time, err error) {
	from, _ = notation.ParseMoment("today", now)
	if len(a.States) > 0 {
		from = now
	}
	to = now
	if a.since != "" {
		if from, err = notation.ParseMoment(a.since, now); err != nil {
			return from, to, err
		}
		if len(a.States) > 0 {
			to = from // -s means one moment
		}
	}
	if a.until != "" {
		to, err = notation.ParseMoment(a.until, now)
	}
	return from, to, err
}

// Since is when the time begins of which jobs are shown.
func (a *Acct) Since(now time.Time) (time.Time, error) {
	from, _, err := a.window(now)
	return from, err
}

// within says whether a job could have run, or did, in a span of time; or, of one that is over, if its state matters,
// whether it got into it then.
func within(j *Job, from, to time.Time, byState bool) bool {
	if byState && j.State.Over() {
		return !j.Times.Ended.After(to) && !seconds(j.Times.Ended).Before(from)
	}
	return !j.Times.Eligible.IsZero() && !j.Times.Eligible.After(to) &&
		(j.Times.Ended.IsZero() || !seconds(j.Times.Ended).Before(from))
}
