package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A plan that needs hosts for longer than a walltime has one glidein follow another at a site. When the later one is
// wanted was planned with the waits that were expected; the earlier one may come sooner or later than that. So once it
// runs, its follower is wanted when a successor of its own would be (see overlap.go), and until then not at all. If it
// ends before, its follower is wanted at the time that was known last.

// retimeLeast is by how much the time must change at which a follower is wanted, to be worth an entry in its history:
// by half of its overlap, so that what is left of that covers the change, within bounds.
func retimeLeast(g corral.Glidein) time.Duration {
	return min(max(time.Second, time.Duration(g.Overlap)/2), time.Minute)
}

// follow returns the action that sets when a follower is wanted, if that is to change.
func follow(now time.Time, w World, g corral.Glidein) (Retime, bool) {
	p, ok := followed(w, g)
	if !ok {
		return Retime{}, false
	}
	a, ok := running(p)
	if !ok {
		return Retime{}, false
	}
	wait := expectedWait(w, g)
	at := workersLeave(p, a).Add(-time.Duration(g.Overlap + wait.Wait)).Truncate(time.Millisecond)
	change := at.Sub(g.NotBefore)
	if max(change, -change) < retimeLeast(g) || !at.After(now) && !g.NotBefore.After(now) {
		return Retime{}, false
	}
	reason := fmt.Sprintf("it takes over from glidein %d, and is to run %s before that one's workers leave", p.ID,
		g.Overlap)
	if wait.Wait > 0 {
		reason += fmt.Sprintf("; nine of ten attempts at the site wait %s at most", wait.Wait)
	}
	return Retime{g.ID, at, reason}, true
}

// followed returns the glidein that g takes over from; ok is false if g follows none, was submitted already, or need
// not wait for it any more.
func followed(w World, g corral.Glidein) (p corral.Glidein, ok bool) {
	if g.Follows == 0 || len(g.Attempts) > 0 || g.State.Terminal() || g.Asked != corral.AskNothing {
		return p, false
	}
	i, ok := slices.BinarySearchFunc(w.Glideins, g.Follows, func(p corral.Glidein, id corral.GlideinID) int {
		return cmp.Compare(p.ID, id)
	})
	if !ok {
		return p, false
	}
	p = w.Glideins[i]
	return p, !p.State.Terminal() && p.Asked == corral.AskNothing
}

// running returns the attempt of a glidein that has its workers at present.
func running(g corral.Glidein) (a corral.Job, ok bool) {
	for _, b := range g.Live() {
		if b.State == corral.JobRunning {
			a, ok = b, true
		}
	}
	return a, ok
}
