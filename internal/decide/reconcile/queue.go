package reconcile

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// Lifetimes says how long a token for an HTCondor pool is good. One that is replaced while its attempt
// waits need not be good for all of a week in a queue.
type Lifetimes struct {
	Queue  time.Duration // in which the attempt may start
	Renew  time.Duration // so long before that is over the token is replaced
	Margin time.Duration // beyond the walltime: clocks differ, and a batch system may be late
}

// Of returns for how long a token is to be good that an attempt is given now.
func (l Lifetimes) Of(g corral.Glidein, a corral.Job, now time.Time) time.Duration {
	wait := max(0, g.LatestStart(a).Sub(now))
	return min(l.Queue, wait) + time.Duration(g.Walltime) + l.Margin
}

// grain is how exactly the end of a token is kept.
const grain = 2 * time.Second

// A Token is one that an attempt, which waits, surely has at its site for its HTCondor pool.
type Token struct {
	Ends  time.Time
	Since time.Time // zero: since the attempt was asked for
}

// renewAt is when a token is to be replaced; zero if it is good for as long as the attempt may wait. A pool need not
// make tokens that are good for as long as they should be: then each is used for a while all the same.
func (l Lifetimes) renewAt(g corral.Glidein, a corral.Job, t Token) time.Time {
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

// waiting decides about an attempt that its site has not started yet. It is given up when it has waited for too long,
// or when the site keeps saying that it will never start; another may then be luckier. One whose submission was never
// answered is taken up again, unless something is lacking that it would fail for. The last case replaces a token that
// would end before the attempt's workers leave.
func waiting(now time.Time, w World, g corral.Glidein, a corral.Job) []Action {
	lack, kept := w.lack(g), keeps(now, w, g)
	never := w.Hopeless[a.ID]
	renew := w.Lifetimes.renewAt(g, a, w.Tokens[a.ID])
	switch {
	case !now.Before(g.LatestStart(a)):
		return []Action{Cancel{a, tooLong(a, g.LatestStart(a))}}
	case !never.IsZero() && !now.Before(never.Add(hopeGrace)):
		return []Action{Cancel{a, neverStarts(a)}}
	case a.State == corral.JobNew && kept.Why != "" && !kept.Final: // each poll adopts it if it shows up
		return nil
	case a.State == corral.JobNew:
		return []Action{Resume{a}}
	case !renew.IsZero() && !now.Before(renew) && lack.Why == "":
		return []Action{Renew{a}}
	}
	return nil
}

// hopeGrace is for how long a site must say that it never starts a job: its rules may be about to change, and what it
// says of a job that it has just taken need not last.
const hopeGrace = 15 * time.Second

// serving decides about a setup or cleanup job that its site has taken.
func serving(now time.Time, w World, j corral.Job) []Action {
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

// latestStart is when a setup or cleanup job is given up that has not started.
func latestStart(j corral.Job) time.Time {
	return j.CreatedAt.Add(time.Duration(corral.DefaultQueueTimeout))
}

// servingTimes are when a setup or cleanup job is given up that waits.
func servingTimes(w World) []time.Time {
	var times []time.Time
	for _, j := range w.Jobs {
		if j.Live() && j.State != corral.JobRunning {
			times = append(times, latestStart(j))
			if never := w.Hopeless[j.ID]; !never.IsZero() {
				times = append(times, never.Add(hopeGrace))
			}
		}
	}
	return times
}

// Overdue returns why a live job was cancelled although no user had asked for that: it had waited for too long, and
// another may be luckier; or its site never starts it, nor another like it.
func (w World) Overdue(a corral.Job) (why string, hopeless bool) {
	if a.Asked != corral.AskCancel {
		return "", false
	}
	if a.Kind != corral.PilotJob {
		switch w.Site.State {
		case corral.SiteStaging, corral.SiteReady, corral.SiteRemoving: // in others its end was wanted
			return overdue(a, latestStart(a))
		}
		return "", false
	}
	for _, g := range w.Glideins {
		if g.ID == a.Glidein && g.Asked == corral.AskNothing && w.Site.State == corral.SiteReady {
			return overdue(a, g.LatestStart(a))
		}
	}
	return "", false
}

// overdue tells the two reasons apart by when the attempt was asked to end: before its time in the queue was over it
// can only have been that the site never starts it.
func overdue(a corral.Job, latest time.Time) (why string, hopeless bool) {
	if a.UpdatedAt.Before(latest) { // when it was asked
		return neverStarts(a), true
	}
	return tooLong(a, latest), false
}

func neverStarts(a corral.Job) string {
	return "the site took it, and never starts it: " + a.Reason
}

func tooLong(a corral.Job, latest time.Time) string {
	return fmt.Sprintf("waited longer than %s in the queue", latest.Sub(a.CreatedAt))
}
