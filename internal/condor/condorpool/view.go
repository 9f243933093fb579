package condorpool

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// How often the collector is asked. A question costs it and us some 40 ms of a processor.
const (
	lookFast  = 300 * time.Millisecond // while somebody waits for workers
	lookSlow  = 3 * time.Second        // to see which of them are busy
	lookShare = 4                      // a question takes at most one of so many parts of the time
	lookNever = time.Hour              // without an attempt there are no workers: the store wakes the keeper
)

// How long it is asked at the fast pace: after a change, and from when an attempt last changed while it lacks
// workers. An attempt may wait in a site's queue for days.
const (
	fastAfterChange  = 3 * time.Second
	fastAfterAttempt = time.Minute
)

// A view is what the watch knows of the collector's answers, and decides when to ask it next: often while workers are
// expected or something has just changed, because a run or a user waits for that; now and then otherwise; and never
// without a live attempt.
type view struct {
	asked   time.Time // when the collector was last asked
	heard   time.Time // when it last answered
	changed time.Time // when workers or attempts last changed
	live    []corral.JobID
	rest    time.Duration // from asked on it is left in peace
	silent  bool          // it does not answer, and that was said
}

// attempts takes in which attempts are alive, and reports whether that changed.
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

// answered takes in that the collector was asked, until now, for so long. It reports whether the answers are so close
// together that a worker which was not in the last one has just registered. A collector that takes long is asked less
// often, so that asking never takes most of its time.
func (v *view) answered(ok bool, now time.Time, took time.Duration) (watched bool) {
	watched = now.Sub(v.heard) < 2*lookSlow
	v.asked, v.silent = now, !ok
	v.rest = min(lookSlow, lookShare*took)
	if ok {
		v.heard = now
	}
	return watched
}

// wait returns how long after now the next question is due.
func (v *view) wait(now time.Time, live []attempt, workers []corral.Worker) time.Duration {
	if len(live) == 0 {
		return lookNever
	}
	return v.asked.Add(max(v.pace(now, live, workers), v.rest)).Sub(now)
}

// pace returns how long after a question the next one is due, however long the first took.
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
