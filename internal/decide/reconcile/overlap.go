package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/resubmit"
)

// An attempt that is submitted after the end of the one before it leaves the cluster without workers for as long as
// the site's queue is (Juve 2012 part 5.1, T4). With an overlap its successor is submitted earlier: so early that it
// runs for the length of the overlap before the workers of its predecessor leave, if it waits no longer than most
// attempts there have waited. It may wait less; then both run together for longer. Two generations are the most at
// once, so that a site never has more than twice what was asked for.

// WaitsKept is how many of a site's latest waits an estimate is made from: queues change.
const WaitsKept = 50

// overlapShare is the share of attempts that wait no longer than a successor is given time for.
const overlapShare = 0.9

// wantsOverlap reports whether the one live attempt is near its end and the policy will want another.
func wantsOverlap(now time.Time, w World, g corral.Glidein, live []corral.Job) (bool, string) {
	if g.Overlap == 0 || len(live) != 1 || live[0].State != corral.JobRunning {
		return false, ""
	}
	if now.Before(overlapAt(w, g, live[0])) {
		return false, ""
	}
	verdict, notBefore, why := g.NextIfExpired(now)
	return verdict == resubmit.Again && !now.Before(notBefore), why + ", " + overlapping(w, g, live[0])
}

// overlapping says for people why the successor of an attempt is submitted when it is.
func overlapping(w World, g corral.Glidein, a corral.Job) string {
	said := fmt.Sprintf("overlapping attempt %d by %s", a.Number, g.Overlap)
	switch wait := expectedWait(w, g); {
	case wait.AtLeast && wait.Wait > 0:
		said += fmt.Sprintf("; waits at the site are %s at least", wait.Wait)
	case wait.Wait > 0:
		said += fmt.Sprintf("; nine of ten attempts at the site wait %s at most", wait.Wait)
	}
	return said
}

// overlapAt is when the successor of a running attempt is to be submitted.
func overlapAt(w World, g corral.Glidein, a corral.Job) time.Time {
	return workersLeave(g, a).Add(-time.Duration(g.Overlap + expectedWait(w, g).Wait))
}

// workersLeave is when the workers of a running attempt leave for their walltime, which the pilot itself outlives.
func workersLeave(g corral.Glidein, a corral.Job) time.Time {
	walltime := time.Duration(g.Walltime)
	return a.StartedAt.Add(matching.CutAfter(walltime - jobfiles.Reserve(walltime)))
}

// expectedWait is how long a further attempt of a glidein is taken to wait: as attempts of like width did in the same
// queue, or if there were none as all in it. A glidein that has a running attempt has at least the wait of that one to
// go by. Attempts that wait now say nothing yet: what they would tell changes with the time of day, and then Due could
// not say when the answer changes.
func expectedWait(w World, g corral.Glidein) corral.Quantile {
	if g.Overlap == 0 && g.Follows == 0 {
		return corral.Quantile{}
	}
	past := slices.DeleteFunc(slices.Clone(w.Waits), func(p corral.Wait) bool {
		return p.StartedAt.IsZero() && p.EndedAt.IsZero()
	})
	here := queueing.In(cmp.Or(g.Queue, w.Site.Queue), past)
	if near := queueing.Near(g.Hosts*g.CPUs, here); len(near) > 0 {
		here = near
	}
	return queueing.Quantile(here, overlapShare, time.Time{})
}
