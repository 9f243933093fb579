package store_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
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
		{"settling what is settled", func(tx *store.Tx) error { _, err := tx.SettleGlidein(g.ID); return err }, false},
		{"log", func(tx *store.Tx) error { return tx.Log(store.ObjectGlidein, int64(g.ID), "note", "") }, true},
		{"ask", func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, ""); return err }, true},
	} {
		changed := w.db.Changed()
		w.write(c.fn)
		if got := closed(changed); got != c.want {
			t.Errorf("%s: closed = %v, want %v", c.name, got, c.want)
		}
	}
}

// Who takes the channel before reading misses nothing: many waiters follow a glidein's job to its end,
// however the writer's commits fall between their steps. A lost wake-up leaves a waiter asleep, which
// the bubble reports as a deadlock.
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
		changed := db.Changed()
		var j corral.Job
		err := db.View(t.Context(), func(tx *store.Tx) (err error) { j, err = tx.Job(id); return err })
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
