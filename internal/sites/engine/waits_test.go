package engine

import (
	"slices"
	"sync"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/resubmit"
)

// A queued attempt shows the site's reason, which changes with the site's and adds no history entries.
func TestWhyAnAttemptWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := &sync.Map{}
	w.fault = func(b gridsite.Batch) gridsite.Batch { return queue{b, w.dir + "/here", all} }
	w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{})
	a := w.queued(g.ID)
	before := w.history(corral.ObjectJob, int64(a.ID))
	for _, why := range []string{"Priority", "Resources"} {
		all.Store("why", why)
		w.until("the reason is "+why, func() bool {
			a = w.queued(g.ID)
			return a.Reason == why
		})
	}
	if after := w.history(corral.ObjectJob, int64(a.ID)); !slices.Equal(before, after) {
		t.Errorf("its history grew from %q to %q", before, after)
	}
	if state, reason := w.glideinNow(g.ID).Shown(); state != string(corral.JobQueued) || reason != "here says: Resources" {
		t.Errorf("it is shown as %s: %s", state, reason)
	}
}
