package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// Outlook returns the next event for a glidein, its earliest time, and the rule that causes it, as far as they are
// known at now. The event is what Decide would do if no other events occurred, time passed, and running attempts used
// their full walltimes.
func Outlook(now time.Time, w World, g corral.Glidein) corral.Outlook {
	live := g.Live()
	switch {
	case g.State.Terminal():
		return corral.Outlook{Next: corral.NextNothing, Why: g.Reason}
	case g.Asked != corral.AskNothing:
		return corral.Outlook{Next: corral.NextLeave, Why: "asked to " + string(g.Asked)}
	case len(live) == 0:
		return firstOutlook(now, &w, &g)
	case len(live) > 1:
		return succession(live)
	case live[0].State != corral.JobRunning:
		return corral.Outlook{Next: corral.NextStart, Attempt: live[0].Number, At: g.LatestStart(live[0]),
			Why: "it waits in the site's queue, and is cancelled if it has not started by then"}
	}
	return runningOutlook(now, &w, &g, live[0])
}

// firstOutlook returns the outlook of a glidein without a live attempt: the reason why the next attempt is delayed, and
// until when.
func firstOutlook(now time.Time, w *World, g *corral.Glidein) corral.Outlook {
	verdict, notBefore, why := g.Next(now)
	if verdict != resubmit.Again {
		return corral.Outlook{Next: corral.NextFinish, Why: why}
	}
	o := corral.Outlook{Next: corral.NextSubmit, Attempt: nextNumber(g), At: latestOf(notBefore, g.NotBefore), Why: why}
	if g.State == corral.GlideinWaiting && g.Reason != "" { // the reason names the cause of the wait, which may be time
		o.Why += "; " + g.Reason
	}
	if why, ok := mustWait(w, g); ok && !strings.Contains(o.Why, why) {
		o.Why += "; " + why
	}
	if w.Held.Until.After(now) {
		o.At = latestOf(o.At, w.Held.Until)
		if !strings.Contains(o.Why, w.Held.Why) {
			o.Why += "; " + w.Held.Why
		}
	}
	if !o.At.After(now) {
		o.At = time.Time{}
	}
	return o
}

// runningOutlook returns the outlook of a glidein whose only live attempt is running.
func runningOutlook(now time.Time, w *World, g *corral.Glidein, a corral.Job) corral.Outlook {
	leave := workersLeave(g, a)
	at, early := leave, ""
	if g.Overlap > 0 {
		at, early = overlapAt(w, g, a), ", "+overlapping(w, g, a)
	}
	verdict, notBefore, why := g.NextIfExpired(latestOf(now, at))
	if verdict != resubmit.Again {
		return corral.Outlook{Next: corral.NextFinish, At: leave, Why: why}
	}
	// An attempt that overlapped this one may have failed, and its back-off may last longer.
	return corral.Outlook{
		Next: corral.NextSubmit, Attempt: nextNumber(g), At: latestOf(at, notBefore), Why: why + early,
	}
}

// succession returns the outlook of two generations: the later one takes over.
func succession(live []corral.Job) corral.Outlook {
	earlier, later := live[0], live[len(live)-1]
	if later.State != corral.JobRunning {
		return corral.Outlook{Next: corral.NextStart, Attempt: later.Number,
			Why: fmt.Sprintf("it waits in the site's queue to take over from attempt %d", earlier.Number)}
	}
	return corral.Outlook{Next: corral.NextLeave, Attempt: earlier.Number,
		Why: fmt.Sprintf("attempt %d has taken over", later.Number)}
}

// nextNumber returns the number of a glidein's next attempt.
func nextNumber(g *corral.Glidein) int {
	n := 1
	for _, a := range g.Attempts {
		n = max(n, a.Number+1)
	}
	return n
}

// latestOf returns the latest of the given times.
func latestOf(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
