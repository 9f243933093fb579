package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A site that is being set up explains why its setup job waits, as long as the job waits. The site ignores other jobs.
func TestSiteSaysWhyItsJobWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var s corral.Site
	var own, other corral.Job
	w.write(func(tx *store.Tx) (err error) {
		if s, err = tx.CreateSite(newSite("far")); err != nil {
			return err
		}
		if s, err = tx.MoveSite(s.ID, corral.SiteStage, "the site is new"); err != nil {
			return err
		}
		own, err = tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: s.ID, Tag: fmt.Sprint("tag-", tags.Add(1))})
		return err
	})
	says := func(want string) {
		t.Helper()
		w.view(func(tx *store.Tx) (err error) { s, err = tx.Site(s.ID); return err })
		if s.Reason != want {
			t.Errorf("the site says %q, want %q", s.Reason, want)
		}
	}
	note := func(j corral.Job, why string) {
		w.write(func(tx *store.Tx) error { _, err := tx.NoteWaits(j.ID, why); return err })
	}
	queue := corral.JobEvent{Move: corral.JobQueue}
	w.move(own, submitted, queue)
	says("the site is new")
	for _, why := range []string{"Priority", "Resources"} {
		note(own, why)
		says("its setup job waits: " + why)
	}
	w.move(own, started)
	says("its setup job is RUNNING")
	w.move(own, ended(corral.OutcomeDone))
	says("its setup job is RUNNING")

	w.write(func(tx *store.Tx) (err error) {
		if s, err = tx.MoveSite(s.ID, corral.SiteStaged, ""); err != nil {
			return err
		}
		other, err = tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: s.ID, Package: "sha256:" + strings.Repeat("1", 64), Tag: fmt.Sprint("tag-", tags.Add(1))})
		return err
	})
	w.move(other, submitted, queue)
	note(other, "Priority")
	says("")
}
