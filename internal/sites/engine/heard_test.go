package engine

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// The actions of a pilot without a link are known from its report; a pilot with a link has reported them before.
func TestPilotWithoutLinkIsHeard(t *testing.T) {
	t.Parallel()
	for _, leased := range []bool{false, true} {
		w := newWorld(t)
		w.fault = queues(w.dir)
		w.start()
		g := w.glidein(w.site("here").ID, resubmit.Policy{})
		a := w.queued(g.ID)
		if leased {
			if err := w.clusters.Lease(t.Context(), a.ID, "pilot", "digest"); err != nil {
				t.Fatal(err)
			}
		}
		dir := jobdir.Path(w.siteNow(1).Root, a.Tag)
		err := jobfiles.WriteReport(dir, jobfiles.Report{Outcome: corral.OutcomeIdle, Reason: "idle for 1m", Log: []string{"2026-11-21T12:00:00Z broker: directly"}})
		if err != nil {
			t.Fatal(err)
		}
		w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskCancel, "test"); return err })
		w.until("the end", func() bool { return w.glideinNow(g.ID).State == corral.GlideinDeleted })
		lines := w.history(corral.ObjectJob, int64(a.ID))
		if said := slices.Contains(lines, "pilot said: 2026-11-21T12:00:00Z broker: directly"); said == leased {
			t.Errorf("leased %t: history %q", leased, lines)
		}
	}
}
