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

// If an attempt is submitted only after the end of its predecessor, the cluster has no workers for as long as the
// attempt waits in the site's queue (Juve 2012 part 5.1, T4). With an overlap the successor is submitted early enough
// to run for the length of the overlap before the workers of its predecessor leave, provided that it waits no longer
// than most attempts at the site have waited. If it waits for a shorter time, both run together for longer. At most two
// generations exist at once, so that a site never has more than twice the requested number of workers.

// WaitsKept is the number of a site's latest waits that are used for an estimate; older waits are ignored because
// queues change.
const WaitsKept = 50

// overlapShare is the share of attempts whose wait does not exceed the wait that is assumed for a successor.
const overlapShare = 0.9

// wantsOverlap reports whether the only live attempt is close to its end and the policy will want another attempt.
func wantsOverlap(now time.Time, w *World, g *corral.Glidein, live []corral.Job) (bool, string) {
	if g.Overlap == 0 || len(live) != 1 || live[0].State != corral.JobRunning {
		return false, ""
	}
	if now.Before(overlapAt(w, g, live[0])) {
		return false, ""
	}
	verdict, notBefore, why := g.NextIfExpired(now)
	return verdict == resubmit.Again && !now.Before(notBefore), why + ", " + overlapping(w, g, live[0])
}

// overlapping explains when the successor of an attempt is submitted.
func overlapping(w *World, g *corral.Glidein, a corral.Job) string {
	said := fmt.Sprintf("overlapping attempt %d by %s", a.Number, g.Overlap)
	switch wait := expectedWait(w, g); {
	case wait.AtLeast && wait.Wait > 0:
		said += fmt.Sprintf("; waits at the site are %s at least", wait.Wait)
	case wait.Wait > 0:
		said += fmt.Sprintf("; nine of ten attempts at the site wait %s at most", wait.Wait)
	}
	return said
}

// overlapAt returns when the successor of a running attempt should be submitted.
func overlapAt(w *World, g *corral.Glidein, a corral.Job) time.Time {
	return workersLeave(g, a).Add(-time.Duration(g.Overlap + expectedWait(w, g).Wait))
}

// workersLeave returns when the workers of a running attempt leave because of their walltime; the pilot itself leaves
// later.
func workersLeave(g *corral.Glidein, a corral.Job) time.Time {
	walltime := time.Duration(g.Walltime)
	return a.StartedAt.Add(matching.CutAfter(walltime - jobfiles.Reserve(walltime)))
}

// expectedWait returns how long another attempt of a glidein is expected to wait: as long as attempts of similar width
// waited in the same queue or, if there were none, as long as all attempts in that queue. If a glidein has a running
// attempt, at least that attempt's wait is known. Attempts that are waiting now are not used, because their
// contribution would change with time, and then Due could not determine when the result changes.
func expectedWait(w *World, g *corral.Glidein) corral.Quantile {
	if g.Overlap == 0 && g.Follows == 0 {
		return corral.Quantile{}
	}
	here := slices.DeleteFunc(queueing.In(cmp.Or(g.Queue, w.Site.Queue), w.Waits), func(p corral.Wait) bool {
		return p.StartedAt.IsZero() && p.EndedAt.IsZero()
	})
	if near := queueing.Near(g.Hosts*g.CPUs, here); len(near) > 0 {
		here = near
	}
	return queueing.Quantile(here, overlapShare, time.Time{})
}
