package reconcile

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Due returns the time at which the mere passage of time will change Decide's result for w: the end of a back-off, a
// planned start, an overlap, the end of a hold, of the patience with a queue, of a token or of a credential, or the
// time when the pace of submissions allows another one. The result is zero if only events can change Decide's result.
func Due(now time.Time, w World) time.Time {
	next := takeTurns(now, &w).next
	consider := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	siteTimes(now, &w, consider)
	servingTimes(&w, consider)
	stagingTimes(now, &w, consider)
	glideinTimes(now, &w, consider)
	credentialTimes(&w, consider)
	consider(laterTime(&w))
	return next
}

// Ahead is how long before its planned start a glidein matters, because its site may need to be prepared for it. A
// glidein that starts later need not be in a World: plans request hundreds of glideins days in advance.
const Ahead = time.Hour

// laterTime returns the time when a glidein that is not in the world yet begins to matter.
func laterTime(w *World) time.Time {
	if w.Later.IsZero() {
		return time.Time{}
	}
	return w.Later.Add(-Ahead)
}

// siteTimes passes on the end of the site's hold, and the time when its setup or cleanup job may be retried.
func siteTimes(now time.Time, w *World, consider func(time.Time)) {
	consider(w.Held.Until)
	for _, kind := range []corral.JobKind{corral.SetupJob, corral.CleanupJob} {
		if tries, last := lastOf(w.Jobs, kind); tries > 0 {
			consider(retryAt(now, tries, last))
		}
	}
}

// glideinTimes passes on the relevant times of the glideins that have not ended: planned starts, deadlines and
// back-offs and, for their live attempts, the times of the overlap, the end of the patience with the queue, and the
// renewal of tokens.
func glideinTimes(now time.Time, w *World, consider func(time.Time)) {
	for i := range w.Glideins {
		g := &w.Glideins[i]
		if g.State.Terminal() {
			continue
		}
		if steady(g) {
			continue
		}
		_, retry, _ := g.Next(now)
		consider(g.NotBefore)
		consider(g.Resubmit.Deadline)
		consider(retry)
		if live := g.Live(); len(live) > 0 {
			_, retry, _ = g.NextIfExpired(now)
			consider(retry)
			if g.Overlap > 0 && live[0].State == corral.JobRunning {
				consider(overlapAt(w, g, live[0]))
			}
			for _, a := range live {
				consider(g.LatestStart(a))
				consider(w.Lifetimes.renewAt(g, a, w.Tokens[a.ID]))
				if never := w.Hopeless[a.ID]; !never.IsZero() {
					consider(never.Add(hopeGrace))
				}
			}
		}
	}
}
