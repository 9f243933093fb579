package reconcile

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// Lifetimes defines how long a token for an HTCondor pool is valid. Because a token can be replaced while its attempt
// waits, it need not be valid for a whole week in a queue.
type Lifetimes struct {
	Queue  time.Duration // time within which the attempt may start
	Renew  time.Duration // the token is replaced this long before that time is over
	Margin time.Duration // added to the walltime, because clocks differ and a batch system may be late
}

// Of returns how long a token that is issued to an attempt now should be valid.
func (l Lifetimes) Of(g corral.Glidein, a corral.Job, now time.Time) time.Duration {
	wait := max(0, g.LatestStart(a).Sub(now))
	return min(l.Queue, wait) + time.Duration(g.Walltime) + l.Margin
}

// grain is the precision with which the end of a token is stored.
const grain = 2 * time.Second

// A Token describes the HTCondor pool token that a waiting attempt certainly has at its site.
type Token struct {
	Ends  time.Time
	Since time.Time // zero: since the attempt was requested
}

// renewAt returns the time at which a token should be replaced, or zero if the token is valid for as long as the
// attempt may wait. A pool may issue tokens with a shorter lifetime than requested; even such a token is used for a
// while.
func (l Lifetimes) renewAt(g *corral.Glidein, a corral.Job, t Token) time.Time {
	start := t.Ends.Add(-time.Duration(g.Walltime) - l.Margin)
	if t.Ends.IsZero() || !start.Add(grain).Before(g.LatestStart(a)) {
		return time.Time{}
	}
	at, since := start.Add(-l.Renew), cmp.Or(t.Since, a.CreatedAt)
	earliest := since.Add(max(grain, min(l.Renew, t.Ends.Sub(since)/2)))
	if at.Before(earliest) {
		return earliest
	}
	return at
}

// waiting decides about an attempt that its site has not started yet. The attempt is abandoned when it has waited for
// too long, or when the site keeps reporting that it will never start the attempt; another attempt may then be luckier.
// An attempt whose submission was never answered is resumed, unless it would fail because of a known lack. The last
// case replaces a token that would expire before the attempt's workers leave.
func waiting(now time.Time, w *World, g *corral.Glidein, a corral.Job) []Action {
	lack, kept := w.lack(g), keeps(now, w, g)
	never := w.Hopeless[a.ID]
	renew := w.Lifetimes.renewAt(g, a, w.Tokens[a.ID])
	switch {
	case !now.Before(g.LatestStart(a)):
		return []Action{Cancel{a, tooLong(a, g.LatestStart(a))}}
	case !never.IsZero() && !now.Before(never.Add(hopeGrace)):
		return []Action{Cancel{a, neverStarts(a)}}
	case a.State == corral.JobNew && kept.Why != "" && !kept.Final: // a poll adopts the job if it appears
		return nil
	case a.State == corral.JobNew:
		return []Action{Resume{a}}
	case !renew.IsZero() && !now.Before(renew) && lack.Why == "":
		return []Action{Renew{a}}
	}
	return nil
}

// hopeGrace is how long a site must report that it will never start a job before the job is abandoned: the site's rules
// may be about to change, and a report about a newly accepted job may be temporary.
const hopeGrace = 15 * time.Second

// serving decides about a setup or cleanup job that its site has accepted.
func serving(now time.Time, w *World, j corral.Job) []Action {
	never := w.Hopeless[j.ID]
	switch {
	case j.Asked == corral.AskCancel:
		return []Action{Cancel{j, "asked to cancel"}}
	case j.State == corral.JobRunning:
	case !now.Before(latestStart(j)):
		return []Action{Cancel{j, tooLong(j, latestStart(j))}}
	case !never.IsZero() && !now.Before(never.Add(hopeGrace)):
		return []Action{Cancel{j, neverStarts(j)}}
	}
	return nil
}

// latestStart returns the time at which a setup or cleanup job is abandoned if it has not started.
func latestStart(j corral.Job) time.Time {
	return j.CreatedAt.Add(time.Duration(corral.DefaultQueueTimeout))
}

// servingTimes passes on when waiting setup or cleanup jobs are abandoned.
func servingTimes(w *World, consider func(time.Time)) {
	for _, j := range w.Jobs {
		if j.Live() && j.State != corral.JobRunning {
			consider(latestStart(j))
			if never := w.Hopeless[j.ID]; !never.IsZero() {
				consider(never.Add(hopeGrace))
			}
		}
	}
}

// Overdue returns why a live job was cancelled although no user had requested that: either the job had waited for too
// long, and another job may be luckier, or its site never starts this job or a similar one.
func (w *World) Overdue(a corral.Job) (why string, hopeless bool) {
	if a.Asked != corral.AskCancel {
		return "", false
	}
	if a.Kind != corral.PilotJob {
		switch w.Site.State {
		case corral.SiteStaging, corral.SiteReady, corral.SiteRemoving: // in other states the job's end was intended
			return overdue(a, latestStart(a))
		}
		return "", false
	}
	g, ok := find(w, a.Glidein)
	if !ok || g.Asked != corral.AskNothing || w.Site.State != corral.SiteReady {
		return "", false
	}
	return overdue(a, g.LatestStart(a))
}

// overdue distinguishes the two reasons by the time at which the attempt's end was requested: if that was before the
// attempt's time in the queue was over, the only possible reason is that the site never starts it.
func overdue(a corral.Job, latest time.Time) (why string, hopeless bool) {
	if a.UpdatedAt.Before(latest) { // the time of the request
		return neverStarts(a), true
	}
	return tooLong(a, latest), false
}

func neverStarts(a corral.Job) string {
	return "the site accepted it but never starts it: " + a.Reason
}

func tooLong(a corral.Job, latest time.Time) string {
	return fmt.Sprintf("waited longer than %s in the queue", latest.Sub(a.CreatedAt))
}
