package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// UntilWorkers is a value of `wait` in addition to a glidein's states. The condition is met when the registered workers
// have at least as many cpus as one attempt, not counting the hosts that the attempt has lost.
const UntilWorkers = "workers"

// An Until lists the conditions of a wait; any of them ends it.
type Until []string

// ParseUntil parses a comma-separated list of states, each of which must be in known or also.
func ParseUntil[S ~string](list string, known []S, also ...string) (Until, error) {
	u := Until(strings.Split(list, ","))
	legal := slices.Clone(also)
	for _, s := range known {
		legal = append(legal, string(s))
	}
	for _, s := range u {
		if !slices.Contains(legal, s) {
			return nil, corral.ErrorAt(corral.Invalid, "wait", "%q must be one of %s", s, strings.Join(legal, ", "))
		}
	}
	return u, nil
}

// ParseUntilGlidein parses the conditions of a wait for a glidein: its own states, the states of its furthest attempt,
// which are shown for an ACTIVE glidein, and UntilWorkers.
func ParseUntilGlidein(list string) (Until, error) {
	return ParseUntil(list, corral.GlideinStates,
		UntilWorkers, string(corral.JobSubmitted), string(corral.JobQueued), string(corral.JobRunning))
}

// Late returns the error of a wait that has reached its timeout.
func (u Until) Late(p Progress, after time.Duration) error {
	missing := "not " + u.String()
	if slices.Contains(u, UntilWorkers) {
		missing = "without all of its workers"
	}
	return corral.Errorf(corral.Timeout, "%s, %s, after %s", p.Is, missing, rounded(after))
}

// vain returns the error of a wait whose condition can no longer be met.
func (u Until) vain(p Progress) error {
	if slices.Contains(u, UntilWorkers) {
		return corral.Errorf(corral.Failed, "%s and will not get workers any more", p.Is)
	}
	return corral.Errorf(corral.Failed, "%s and never becomes %s", p.Is, u)
}

// String lists the conditions for people.
func (u Until) String() string { return strings.Join(u, " or ") }

// rounded rounds a wait to a precision that is useful to people.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// A Progress describes an object's progress towards the condition of a wait.
type Progress struct {
	Met  bool   // the condition is met
	Over bool   // the object will not change by itself: waiting longer is useless
	Is   string // its state, for people: "glidein 7 is WAITING (site not ready)"
}

// Done reports whether a wait ends.
func (p Progress) Done() bool { return p.Met || p.Over }

// Site returns the progress of a site.
func (u Until) Site(s corral.Site) Progress {
	over := s.State == corral.SiteDeleted || s.State == corral.SiteFailed
	return Progress{slices.Contains(u, string(s.State)), over, is("site "+s.Name, string(s.State), whyOf(s))}
}

// whyOf explains a site's state. It includes the trouble that blocks corrald, because otherwise the wait would be
// puzzling.
func whyOf(s corral.Site) string {
	if s.Trouble.Why == "" || s.State.Terminal() {
		return s.Reason
	}
	trouble := s.Trouble.InShort() + ": " + s.Trouble.Why
	if s.Reason == "" {
		return trouble
	}
	return s.Reason + "; " + trouble
}

// Cluster returns the progress of a cluster.
func (u Until) Cluster(k corral.Cluster) Progress {
	over := k.State == corral.ClusterDeleted || k.State == corral.ClusterFailed || k.State == corral.ClusterStopped
	return Progress{slices.Contains(u, string(k.State)), over, is("cluster "+k.Name, string(k.State), k.Reason)}
}

// Glidein returns the progress of a glidein. More workers than requested also meet UntilWorkers.
func (u Until) Glidein(g corral.Glidein) Progress {
	state, reason := g.Shown()
	met := slices.Contains(u, UntilWorkers) && g.Complete() ||
		slices.Contains(u, string(g.State)) || slices.Contains(u, state)
	return Progress{met, g.State.Terminal(), is(fmt.Sprintf("glidein %d", g.ID), state, reason)}
}

// Run returns the progress of a run.
func (u Until) Run(r corral.Run) Progress {
	return Progress{slices.Contains(u, string(r.State)), r.State.Over(),
		is(fmt.Sprintf("run %d", r.ID), string(r.State), r.Reason)}
}

// Ensemble returns the progress of an ensemble.
func (u Until) Ensemble(e record.Ensemble) Progress {
	return Progress{slices.Contains(u, string(e.State)), e.State == record.Ended || e.State == record.Deleted,
		is(fmt.Sprintf("ensemble %d", e.ID), string(e.State), e.Reason)}
}

// Owner returns the progress of an owner whose account is being ended.
func (u Until) Owner(o corral.Owner) Progress {
	reason := o.Reason
	if len(o.WaitsFor) > 0 {
		reason = "waits: " + strings.Join(o.WaitsFor, "; ")
	}
	return Progress{slices.Contains(u, string(o.State)), o.State != corral.OwnerEnding,
		is("the account "+o.Name, string(o.State), reason)}
}

// is describes the state of an object, with the reason if there is one.
func is(what, state, reason string) string {
	if reason != "" {
		state += " (" + reason + ")"
	}
	return what + " is " + state
}
