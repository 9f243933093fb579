package corral

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/resubmit"
)

// Derive returns the glidein's state and reason at now, derived from the asks, its attempts, the state of its site, the
// site's hold, and a lack. It is the only source of Glidein.State. A DELETED glidein stays DELETED.
func (g *Glidein) Derive(site SiteState, held Hold, lack Lack, now time.Time) (GlideinState, string) {
	live := g.Live()
	switch {
	case g.State == GlideinDeleted:
		return GlideinDeleted, g.Reason
	case g.Asked != AskNothing && len(live) > 0:
		return GlideinRemoving, "asked to " + string(g.Asked)
	case g.Asked != AskNothing:
		return GlideinDeleted, "removed"
	case len(live) > 0:
		return GlideinActive, string(furthest(live).words(nil))
	case g.State.Terminal(): // keep an old verdict: until=TIME must not be evaluated again at a later now
		return g.State, g.Reason
	}
	return g.deriveWithoutAttempt(site, held, lack, now)
}

// words appends the reason of a glidein whose furthest live attempt is this one.
func (j *Job) words(b []byte) []byte {
	b = append(b, "attempt "...)
	b = strconv.AppendInt(b, int64(j.Number), 10)
	return append(append(b, ' '), j.State...)
}

// Current reports whether the recorded state and reason are those of Derive. A look at a site asks this for each of its
// glideins, so in the usual states no reason is built on the heap.
func (g *Glidein) Current(site SiteState, held Hold, lack Lack, now time.Time) bool {
	var buf [96]byte
	live := g.Live()
	switch {
	case g.Asked != AskNothing, g.State.Terminal():
	case len(live) > 0:
		return g.State == GlideinActive && string(furthest(live).words(buf[:0])) == g.Reason
	case site == SiteReady && !lack.Final && len(g.Attempts) == 0 && now.Before(g.NotBefore):
		return g.State == GlideinWaiting && string(g.notBefore(buf[:0])) == g.Reason
	}
	state, reason := g.Derive(site, held, lack, now)
	return state == g.State && reason == g.Reason
}

// deriveWithoutAttempt is Derive for a glidein without live attempts that was not asked to end.
func (g *Glidein) deriveWithoutAttempt(site SiteState, held Hold, lack Lack, now time.Time) (GlideinState, string) {
	verdict, notBefore, why := g.Next(now)
	switch verdict {
	case resubmit.Finish:
		return GlideinFinished, g.lastWord(why)
	case resubmit.Fail:
		return GlideinFailed, g.lastWord(why)
	}
	switch {
	case site == SiteFailed, site == SiteRemoving, site == SiteDeleted:
		return GlideinFailed, "site is " + string(site)
	case site != SiteReady: // not EXITING either: the glidein is about to be removed then
		return GlideinWaiting, "site not ready"
	case lack.Final:
		return GlideinFailed, lack.Why
	case now.Before(g.NotBefore):
		return GlideinWaiting, string(g.notBefore(nil))
	case now.Before(held.Until):
		return GlideinWaiting, "limit circuit breaker: " + held.Why + "; none before " + held.Until.Format(time.RFC3339)
	case lack.Why != "":
		return GlideinWaiting, lack.Why
	case now.Before(notBefore):
		return GlideinWaiting, "back-off until " + notBefore.Format(time.RFC3339)
	}
	return GlideinWaiting, "to be submitted"
}

// notBefore appends the time until which a glidein waits and, if it follows another glidein, the id of that glidein.
func (g *Glidein) notBefore(b []byte) []byte {
	b = g.NotBefore.AppendFormat(append(b, "not before "...), time.RFC3339)
	if g.Follows != 0 {
		b = strconv.AppendInt(append(b, ", to take over from glidein "...), int64(g.Follows), 10)
	}
	return b
}

// lastWord puts the last attempt's own reason before the rule that ended the glidein.
func (g *Glidein) lastWord(rule string) string {
	if len(g.Attempts) == 0 {
		return rule
	}
	a := g.Attempts[len(g.Attempts)-1]
	word := fmt.Sprintf("attempt %d %s", a.Number, a.Outcome)
	if a.Reason != "" {
		word += ": " + a.Reason
	}
	return word + " (" + rule + ")"
}

// Furthest returns the live attempt with the most advanced state; of two attempts in the same state it returns the
// later one. ok is false if no attempt is alive. It represents an ACTIVE glidein in displays.
func (g *Glidein) Furthest() (a Job, ok bool) {
	if live := g.Live(); len(live) > 0 {
		return *furthest(live), true
	}
	return Job{}, false
}

func furthest(live []Job) *Job {
	a := &live[0]
	for i := range live {
		if b := &live[i]; slices.Index(JobStates, b.State) >= slices.Index(JobStates, a.State) {
			a = b
		}
	}
	return a
}

// Shown returns the state to display, and its reason. For an ACTIVE glidein these are the state and reason of the
// furthest attempt: the site's explanation while the attempt waits, or the hosts that it has lost. Otherwise they are
// the glidein's own.
func (g Glidein) Shown() (state, reason string) {
	if a, ok := g.Furthest(); ok && g.State == GlideinActive {
		switch {
		case a.State == JobQueued && a.Reason != "":
			return string(a.State), g.SiteName + " says: " + a.Reason
		case a.State == JobNew: // the reason explains why corrald cannot use the site, if so
			return string(a.State), a.Reason
		}
		return string(a.State), g.Losses()
	}
	return string(g.State), g.Reason
}
