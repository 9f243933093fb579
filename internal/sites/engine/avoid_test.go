package engine

import (
	"os"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// After a person has forgiven a node, the next attempt may use it, and earlier failures there do not count.
func TestForgivenNodeIsNotAvoided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := keen{excluded: make(chan []string, 10)}
	w.fault = func(real gridsite.Batch) gridsite.Batch { b.Batch = real; return b }
	stop := w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	stop()
	w.write(func(tx *store.Tx) error {
		for _, node := range []string{"n1", "n1", "n1", "n2", "n3", "n4"} {
			g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
				Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: 3600e9}})
			if err != nil {
				return err
			}
			j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.ID, Glidein: g.ID, Tag: admission.NewTag(corral.PilotJob)})
			if err != nil {
				return err
			}
			_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved, Lost: []corral.LostHost{{Node: node, Why: "scratch is full"}}})
			if err != nil {
				return err
			}
		}
		if bad, err := tx.BadNodes(s, "", 1); err != nil || len(bad) != 1 {
			t.Errorf("avoided before are %v, %v; want n1", bad, err)
		}
		return tx.ForgiveNodes(s.ID, "n1")
	})
	w.start()
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("the end", func() bool { return w.glideinNow(g.ID).State.Terminal() })
	if kept := <-b.excluded; len(kept) > 0 {
		t.Errorf("kept off %q", kept)
	}
}

// The start of a worker on a host is also known to a later corrald.
func TestHostsOfWorkersAreRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error { return tx.ForgiveNodes(s.ID, host) }) // an unknown node would be an error
}
