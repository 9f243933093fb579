package job

// sacct shows the jobs of a period. If states are given, -S specifies a moment instead, because a job is in a state at
// a particular time.

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// window returns the period of the jobs to show. By default it begins at the start of the day (-S), and ends now (-E).
// If states are given, it is a single moment: the given one, or now.
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
			to = from // with states, -S means one moment
		}
	}
	if a.until != "" {
		to, err = notation.ParseMoment(a.until, now)
	}
	return from, to, err
}

// Since returns the beginning of the period of the jobs to show.
func (a *Acct) Since(now time.Time) (time.Time, error) {
	from, _, err := a.window(now)
	return from, err
}

// within reports whether a job was eligible or running in a period. If its state matters and the job has ended, within
// reports whether the job ended in the period.
func within(j *Job, from, to time.Time, byState bool) bool {
	if byState && j.State.Over() {
		return !j.Times.Ended.After(to) && !seconds(j.Times.Ended).Before(from)
	}
	return !j.Times.Eligible.IsZero() && !j.Times.Eligible.After(to) &&
		(j.Times.Ended.IsZero() || !seconds(j.Times.Ended).Before(from))
}
