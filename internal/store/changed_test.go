package store_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

func TestChangedOnlyIfSomethingChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	for _, c := range []struct {
		name string
		fn   func(*store.Tx) error
		want bool
	}{
		{"nothing", func(*store.Tx) error { return nil }, false},
		{"settling what is settled", func(tx *store.Tx) error { _, err := tx.SettleGlidein(g.ID, corral.Lack{}); return err }, false},
		{"log", func(tx *store.Tx) error { return tx.Log(corral.ObjectGlidein, int64(g.ID), "note", "") }, true},
		{"ask", func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, ""); return err }, true},
	} {
		changed := w.db.Changed(store.Subject{})
		w.write(c.fn)
		if got := closed(changed); got != c.want {
			t.Errorf("%s: closed = %v, want %v", c.name, got, c.want)
		}
	}
}

// A waiter is woken by changes to its object and to that object's parts, and by nothing else: a hundred waiters must
// not each check every one of fifty commits a second.
func TestChangedOnlyIfTheSubjectChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g)
	other := w.createGlidein(w.newGlidein())
	for _, c := range []struct {
		name    string
		subject store.Subject
		fn      func(*store.Tx) error
		want    bool
	}{
		{"its job moves", store.Subject{corral.ObjectGlidein, int64(g.ID)}, func(tx *store.Tx) error { _, err := tx.MoveJob(j.ID, submitted); return err }, true},
		{"its site's glidein has a job", store.Subject{corral.ObjectSite, int64(g.Site)}, func(tx *store.Tx) error { _, err := tx.MoveJob(j.ID, started); return err }, true},
		{"another glidein is asked", store.Subject{corral.ObjectGlidein, int64(g.ID)}, func(tx *store.Tx) error { _, err := tx.AskGlidein(other.ID, corral.AskDrain, ""); return err }, false},
		{"it is asked", store.Subject{corral.ObjectGlidein, int64(g.ID)}, func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, ""); return err }, true},
		{"a cluster is made", store.Subject{corral.ObjectSite, int64(g.Site)}, func(tx *store.Tx) error {
			_, err := tx.CreateCluster(corral.Cluster{Name: "second", Owner: "local", Kind: corral.Embedded})
			return err
		}, false},
		{"a site is made, for who waits for any", store.Subject{Object: corral.ObjectSite}, func(tx *store.Tx) error {
			_, err := tx.CreateSite(corral.Site{Name: "second", Owner: "local", Contact: "local:", Batch: "fork", Root: "/second"})
			return err
		}, true},
	} {
		changed := w.db.Changed(c.subject)
		w.write(c.fn)
		if got := closed(changed); got != c.want {
			t.Errorf("%s: closed = %v, want %v", c.name, got, c.want)
		}
	}
}

// A waiter that takes the channel before reading misses nothing: many waiters follow a glidein's job to its end,
// regardless of where the writer's commits fall between their steps. A lost wake-up leaves a waiter asleep, which the
// bubble reports as a deadlock.
func TestChangedLosesNoWakeUp(t *testing.T) {
	t.Parallel()
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			j := w.attempt(w.createGlidein(w.newGlidein()))
			var waiters sync.WaitGroup
			for range 4 {
				waiters.Go(func() { waitForEnd(t, w.db, j.ID) })
			}
			w.move(j, submitted, started, ended(corral.OutcomeIdle))
			waiters.Wait()
		})
	}
}

func waitForEnd(t *testing.T, db *store.DB, id corral.JobID) {
	for {
		changed := db.Changed(store.Subject{Object: corral.ObjectJob, ID: int64(id)})
		var j corral.Job
		err := storetest.All(db).View(t.Context(), func(tx *store.Tx) (err error) { j, err = tx.Job(id); return err })
		if err != nil {
			t.Error(err)
			return
		}
		if !j.Live() {
			return
		}
		<-changed
	}
}
