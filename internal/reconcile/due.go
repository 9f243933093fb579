package reconcile

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Due returns when time alone will change what Decide says about w: the end of a back-off, a planned
// start, an overlap, the end of a hold. It is zero if only what happens can change it.
func Due(now time.Time, w World) time.Time {
	var next time.Time
	for _, at := range append(siteTimes(w), glideinTimes(now, w.Glideins)...) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func siteTimes(w World) []time.Time {
	times := []time.Time{w.Held.Until}
	for _, kind := range []corral.JobKind{corral.SetupJob, corral.CleanupJob} {
		if tries, last := lastOf(w.Jobs, kind); tries > 0 {
			times = append(times, retryAt(tries, last))
		}
	}
	return times
}

func glideinTimes(now time.Time, glideins []corral.Glidein) []time.Time {
	var times []time.Time
	for _, g := range glideins {
		_, retry, _ := g.Next(now)
		times = append(times, g.NotBefore, g.Resubmit.Deadline, retry)
		if live := g.Live(); len(live) > 0 {
			_, retry, _ = g.NextIfExpired(now)
			times = append(times, retry, overlapAt(g, live[0]))
		}
	}
	return times
}
