package condorpool

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Intervals of the collector's queries. A query costs the collector and us about 40 ms of processor time.
const (
	lookFast  = 300 * time.Millisecond // while a caller waits for workers
	lookSlow  = 3 * time.Second        // to determine which workers are busy
	lookShare = 4                      // the collector is queried for at most 1/lookShare of the time
	lookNever = time.Hour              // without live attempts there are no workers, and the store wakes the keeper
)

// How long the fast interval applies: after a change, and after an attempt's last change while the attempt lacks
// workers. An attempt may wait in a site's queue for days.
const (
	fastAfterChange  = 3 * time.Second
	fastAfterAttempt = time.Minute
)

// A view tracks the collector's answers and decides when to query it next: often while workers are expected or directly
// after a change, because a run or a user may be waiting for them; occasionally at other times; and never without a
// live attempt.
type view struct {
	asked   time.Time // time of the last query
	heard   time.Time // time of the last answer
	changed time.Time // time of the last change of workers or attempts
	live    []corral.JobID
	rest    time.Duration // minimum pause after asked
	silent  bool          // the collector does not answer, and this has been logged
}

// attempts updates the live attempts and reports whether they changed.
func (v *view) attempts(live []attempt, now time.Time) (changed bool) {
	ids := make([]corral.JobID, len(live))
	for i, a := range live {
		ids[i] = a.ID
	}
	if changed = !slices.Equal(ids, v.live); changed {
		v.live, v.changed = ids, now
	}
	return changed
}

// answered records a query that ended now, and its duration. It reports whether answers follow each other so closely
// that a worker missing from the last answer has just registered. A slow collector is queried less often, so that
// queries never take up most of its time.
func (v *view) answered(ok bool, now time.Time, took time.Duration) (watched bool) {
	watched = now.Sub(v.heard) < 2*lookSlow
	v.asked, v.silent = now, !ok
	v.rest = min(lookSlow, lookShare*took)
	if ok {
		v.heard = now
	}
	return watched
}

// wait returns the time from now until the next query is due.
func (v *view) wait(now time.Time, live []attempt, workers []corral.Worker) time.Duration {
	if len(live) == 0 {
		return lookNever
	}
	return v.asked.Add(max(v.pace(now, live, workers), v.rest)).Sub(now)
}

// pace returns the interval between two queries, regardless of their duration.
func (v *view) pace(now time.Time, live []attempt, workers []corral.Worker) time.Duration {
	if now.Before(v.changed.Add(fastAfterChange)) {
		return lookFast
	}
	registered := map[corral.JobID]int{}
	for _, w := range workers {
		if w.Connected {
			registered[w.Attempt]++
		}
	}
	for _, a := range live {
		if registered[a.ID] < a.hosts && now.Before(a.UpdatedAt.Add(fastAfterAttempt)) {
			return lookFast
		}
	}
	return lookSlow
}
