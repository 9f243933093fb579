package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// An attempt that its site will never start is removed from the queue after a while, and no other attempt follows.
func TestHopelessAttempt(t *testing.T) {
	t.Parallel()
	a := alive(1, corral.JobQueued)
	a.ID, a.StartedAt, a.Reason = 7, time.Time{}, "PartitionTimeLimit"
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever, Retries: 9}, a)
	g.QueueLimit = corral.Seconds(time.Hour)
	said := a.CreatedAt.Add(time.Minute)
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{g}, Hopeless: map[corral.JobID]time.Time{a.ID: said}}
	cancels := func(now time.Time) bool {
		return slices.ContainsFunc(Decide(now, w), func(a Action) bool { _, ok := a.(Cancel); return ok })
	}
	if due := Due(said, w); cancels(said) || cancels(due.Add(-time.Millisecond)) || !cancels(due) {
		t.Errorf("not cancelled just when that is due, %s after the site said so", due.Sub(said))
	}

	a.Asked, a.UpdatedAt = corral.AskCancel, said.Add(time.Minute)
	w.Glideins[0].Attempts = []corral.Job{a}
	s := Sighting{Known: true, Phase: Ended, Killed: ByCancel, EndedAt: a.UpdatedAt}
	s.Overdue, s.Hopeless = w.Overdue(a)
	events := Events(a, s, a.UpdatedAt)
	e := events[len(events)-1]
	if e.Outcome != corral.OutcomeFailed || e.Transient || e.Reason != "the site accepted it but never starts it: PartitionTimeLimit" {
		t.Errorf("it ended as %s, transient %t: %s", e.Outcome, e.Transient, e.Reason)
	}
	over, _, err := a.Apply(e, e.At)
	if err != nil {
		t.Fatal(err)
	}
	g.Attempts = []corral.Job{over}
	if state, reason := g.Derive(corral.SiteReady, corral.Hold{}, corral.Lack{}, a.UpdatedAt); state != corral.GlideinFailed {
		t.Errorf("the glidein is %s: %s", state, reason)
	}
}
