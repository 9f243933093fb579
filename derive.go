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
		a, _ := g.Furthest()
		return GlideinActive, string(a.words(nil))
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

// Current reports whether the recorded state and reason are those of Derive for a glidein whose last attempt is its
// only live one, and of which nothing was asked.
func (g *Glidein) Current() bool {
	var buf [48]byte
	last := &g.Attempts[len(g.Attempts)-1]
	return g.State == GlideinActive && string(last.words(buf[:0])) == g.Reason
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
		return GlideinWaiting, g.notBefore()
	case now.Before(held.Until):
		return GlideinWaiting, "limit circuit breaker: " + held.Why + "; none before " + held.Until.Format(time.RFC3339)
	case lack.Why != "":
		return GlideinWaiting, lack.Why
	case now.Before(notBefore):
		return GlideinWaiting, "back-off until " + notBefore.Format(time.RFC3339)
	}
	return GlideinWaiting, "to be submitted"
}

// notBefore describes the time until which a glidein waits and, if it follows another glidein, names that glidein.
func (g *Glidein) notBefore() string {
	said := "not before " + g.NotBefore.Format(time.RFC3339)
	if g.Follows != 0 {
		said += fmt.Sprintf(", to take over from glidein %d", g.Follows)
	}
	return said
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
	for _, b := range g.Live() {
		if !ok || slices.Index(JobStates, b.State) >= slices.Index(JobStates, a.State) {
			a, ok = b, true
		}
	}
	return a, ok
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
