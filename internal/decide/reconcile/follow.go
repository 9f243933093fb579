package reconcile

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/corral-pilot/corral"
)

// If a plan needs hosts for longer than a walltime, one glidein follows another at a site. The start of the later
// glidein was planned relative to the start of the earlier one, whose actual start may be earlier or later than
// planned. So a follower is wanted at the planned interval after the actual start of the glidein that it follows, and
// not at all before that start. Its own followers are shifted with it.
//
// If waits turn out to be longer than planned, the follower is wanted somewhat earlier, so that the place is not empty
// in the meantime. It is not wanted much earlier, because a plan has a fixed number of pilots, and a pilot that starts
// early has less time left for the work planned on it.

// mostEarlier returns the maximum time by which a follower may be wanted earlier than planned.
func mostEarlier(g *corral.Glidein) time.Duration {
	return min(time.Minute, time.Duration(g.Walltime)/20)
}

// earlier returns the time by which a follower is wanted earlier than planned: the amount by which the wait that nine
// of ten attempts do not exceed is longer than the planned wait.
func earlier(w *World, g *corral.Glidein) time.Duration {
	return min(max(0, time.Duration(expectedWait(w, g).Wait-g.FollowsWait)), mostEarlier(g))
}

// retimeLeast returns the smallest change of a follower's start time that is worth an entry in its history.
func retimeLeast(g *corral.Glidein) time.Duration {
	return min(max(time.Second, time.Duration(g.FollowsAfter)/100), time.Minute)
}

// follow returns the action that sets the time when a follower is wanted, if that time has to change.
func follow(now time.Time, w *World, g *corral.Glidein) (Retime, bool) {
	p, after, ok := followed(w, g)
	if !ok {
		return Retime{}, false
	}
	at, reason := time.Time{}, ""
	switch a, runs := running(p); {
	case p.State == corral.GlideinFailed:
		at, reason = endOf(p), fmt.Sprintf("it takes over from glidein %d, which has failed: its place is empty", p.ID)
		if !at.Before(g.NotBefore) {
			return Retime{}, false
		}
	case p.State.Terminal(), p.Asked != corral.AskNothing:
		return Retime{}, false // the last known time remains
	case runs:
		sooner := earlier(w, g)
		at = a.StartedAt.Add(after - sooner).Truncate(time.Millisecond)
		reason = fmt.Sprintf("it takes over from glidein %d, and was planned %s after that one's start", p.ID,
			corral.Seconds(after))
		if sooner > 0 {
			reason += fmt.Sprintf("; %s sooner, because waits are longer than planned", corral.Seconds(sooner))
		}
	case len(p.Attempts) == 0 && p.NotBefore.After(now):
		at = p.NotBefore.Add(after).Truncate(time.Millisecond)
		reason = fmt.Sprintf("it takes over from glidein %d, which is wanted at another time", p.ID)
	default:
		return Retime{}, false
	}
	change := at.Sub(g.NotBefore)
	if max(change, -change) < retimeLeast(g) || !at.After(now) && !g.NotBefore.After(now) {
		return Retime{}, false
	}
	return Retime{g.ID, at, reason}, true
}

// mustWait returns why a follower must wait regardless of the time: its predecessor is not running yet, or is still
// running beside the glidein before it. So at most two generations occupy a place.
func mustWait(w *World, g *corral.Glidein) (why string, ok bool) {
	p, _, ok := followed(w, g)
	if !ok || p.State.Terminal() || p.Asked != corral.AskNothing {
		return "", false
	}
	if _, runs := running(p); !runs {
		return fmt.Sprintf("it takes over from glidein %d, which does not run yet", p.ID), true
	}
	if o, ok := find(w, p.Follows); ok && len(o.Live()) > 0 {
		return fmt.Sprintf("it takes over from glidein %d, which takes over from glidein %d, which has not left yet",
			p.ID, o.ID), true
	}
	return "", false
}

// followed returns the glidein whose start determines when g is wanted, and how long after that start g is wanted; ok
// is false if g follows no glidein, or has already been submitted. The glidein is g's predecessor or, if that was
// dropped before it ran, the predecessor's predecessor, and so on.
func followed(w *World, g *corral.Glidein) (p *corral.Glidein, after time.Duration, ok bool) {
	if g.Follows == 0 || len(g.Attempts) > 0 || g.State.Terminal() || g.Asked != corral.AskNothing {
		return p, 0, false
	}
	for p = g; ; {
		after += time.Duration(p.FollowsAfter)
		if p, ok = find(w, p.Follows); !ok || !Dropped(p) {
			return p, after, ok
		}
	}
}

// Dropped reports whether the removal of a glidein was requested and the glidein never ran: its followers then follow
// the glidein before it.
func Dropped(g *corral.Glidein) bool {
	return g.Asked != corral.AskNothing && !slices.ContainsFunc(g.Attempts, func(a corral.Job) bool {
		return !a.StartedAt.IsZero()
	})
}

// find returns a glidein of the world.
func find(w *World, id corral.GlideinID) (g *corral.Glidein, ok bool) {
	i := sort.Search(len(w.Glideins), func(i int) bool { return w.Glideins[i].ID >= id })
	if id == 0 || i == len(w.Glideins) || w.Glideins[i].ID != id {
		return nil, false
	}
	return &w.Glideins[i], true
}

// running returns the running attempt of a glidein.
func running(g *corral.Glidein) (a corral.Job, ok bool) {
	for _, b := range g.Live() {
		if b.State == corral.JobRunning {
			a, ok = b, true
		}
	}
	return a, ok
}

// endOf returns when the last attempt of an ended glidein ended.
func endOf(g *corral.Glidein) (at time.Time) {
	for _, a := range g.Attempts {
		at = latestOf(at, a.EndedAt)
	}
	return at
}
