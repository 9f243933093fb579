package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// A glidein that is resubmitted forever does not fill its site: the directories of old attempts are removed, even if
// hundreds ended while the engine was down.
func TestOldAttemptsAreForgotten(t *testing.T) {
	t.Parallel()
	const old = 2*manyAtOnce + 19
	w := newWorld(t)
	stop := w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	stop()

	var dirs []string
	w.write(func(tx *store.Tx) error {
		g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
			Shape:    corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: corral.Seconds(time.Minute)},
			Resubmit: resubmit.Policy{Mode: resubmit.Forever}})
		if err != nil {
			return err
		}
		for i := range keptAttempts + old {
			j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.ID, Glidein: g.ID, Tag: fmt.Sprintf("corral-pilot-%d", i)})
			if err != nil {
				return err
			}
			for _, ev := range []corral.JobEvent{
				{Move: corral.JobSubmit, SiteJobID: "1.1"}, {Move: corral.JobStart},
				{Move: corral.JobEnd, Outcome: corral.OutcomeExpired, At: time.Now().UTC().Add(time.Duration(i) * time.Millisecond)},
			} {
				if _, err := tx.MoveJob(j.ID, ev); err != nil {
					return err
				}
			}
			dirs = append(dirs, filepath.Join(s.Root, "jobs", j.Tag))
		}
		_, err = tx.AskGlidein(g.ID, corral.AskDrain, "test")
		return err
	})
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, "scratch"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	await(t, "old directories are gone", func() bool {
		for _, dir := range dirs[:old] {
			if _, err := os.Lstat(dir); err == nil {
				return false
			}
		}
		return true
	})
	for _, dir := range dirs[old:] {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("a recent attempt: %v", err)
		}
	}
}

// await waits for a state of the site.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
