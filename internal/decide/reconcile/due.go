package reconcile

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Due returns the time at which the mere passage of time will change Decide's result for w: the end of a back-off, a
// planned start, an overlap, the end of a hold, of the patience with a queue, of a token or of a credential, or the
// time when the pace of submissions allows another one. The result is zero if only events can change Decide's result.
func Due(now time.Time, w World) time.Time {
	next := takeTurns(now, w).next
	for _, at := range slices.Concat(siteTimes(now, w), servingTimes(w), stagingTimes(now, w), glideinTimes(now, w),
		credentialTimes(w), []time.Time{laterTime(w)}) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Ahead is how long before its planned start a glidein matters, because its site may need to be prepared for it. A
// glidein that starts later need not be in a World: plans request hundreds of glideins days in advance.
const Ahead = time.Hour

// laterTime returns the time when a glidein that is not in the world yet begins to matter.
func laterTime(w World) time.Time {
	if w.Later.IsZero() {
		return time.Time{}
	}
	return w.Later.Add(-Ahead)
}

// siteTimes returns the end of the site's hold, and the time when its setup or cleanup job may be retried.
func siteTimes(now time.Time, w World) []time.Time {
	times := []time.Time{w.Held.Until}
	for _, kind := range []corral.JobKind{corral.SetupJob, corral.CleanupJob} {
		if tries, last := lastOf(w.Jobs, kind); tries > 0 {
			times = append(times, retryAt(now, tries, last))
		}
	}
	return times
}

// glideinTimes returns the relevant times of the glideins that have not ended: planned starts, deadlines and back-offs
// and, for their live attempts, the times of the overlap, the end of the patience with the queue, and the renewal of
// tokens.
func glideinTimes(now time.Time, w World) []time.Time {
	var times []time.Time
	for _, g := range w.Glideins {
		if g.State.Terminal() {
			continue
		}
		_, retry, _ := g.Next(now)
		times = append(times, g.NotBefore, g.Resubmit.Deadline, retry)
		if live := g.Live(); len(live) > 0 {
			_, retry, _ = g.NextIfExpired(now)
			times = append(times, retry)
			if g.Overlap > 0 && live[0].State == corral.JobRunning {
				times = append(times, overlapAt(w, g, live[0]))
			}
			for _, a := range live {
				times = append(times, g.LatestStart(a), w.Lifetimes.renewAt(g, a, w.Tokens[a.ID]))
				if never := w.Hopeless[a.ID]; !never.IsZero() {
					times = append(times, never.Add(hopeGrace))
				}
			}
		}
	}
	return times
}
