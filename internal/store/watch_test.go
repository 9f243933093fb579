package store_test

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A watch hears of each object once, however often it changed, and of nothing after it was closed.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.createRun(w.newRun("/runs/1"))
	watch := w.db.Watch()
	defer watch.Close()
	if got := watch.Take(); len(got) != 0 {
		t.Errorf("changed before anything did: %v", got)
	}
	for done := range 3 {
		w.write(func(tx *store.Tx) error {
			_, err := tx.SetRun(run.ID, corral.RunTasks{Total: 3, Done: done, Ready: 3 - done}, nil)
			return err
		})
	}
	g := w.createGlidein(w.newGlidein())
	<-watch.Filled
	got := watch.Take()
	for _, want := range []store.Subject{{Object: corral.ObjectRun, ID: int64(run.ID)}, {Object: corral.ObjectGlidein, ID: int64(g.ID)}} {
		if !slices.Contains(got, want) {
			t.Errorf("changed: %v, want %v among them", got, want)
		}
	}
	if slices.ContainsFunc(got, func(s store.Subject) bool { return s.ID == 0 }) {
		t.Errorf("changed: %v, want no kinds", got)
	}
	if again := watch.Take(); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
	w.refused(corral.Internal, func(tx *store.Tx) error {
		if _, err := tx.AskGlidein(g.ID, corral.AskDrain, ""); err != nil {
			return err
		}
		return corral.Errorf(corral.Internal, "after all not")
	})
	if got := watch.Take(); len(got) != 0 {
		t.Errorf("what was not committed: %v", got)
	}
	watch.Close()
	w.createGlidein(w.newGlidein())
	if got := watch.Take(); len(got) != 0 {
		t.Errorf("after its end: %v", got)
	}
}

// Counts are of what is there, by state and site.
func TestCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g, submitted)
	w.attempt(g, submitted, started)
	w.attempt(g, submitted, started, ended(corral.OutcomeIdle))
	run := w.createRun(w.newRun("/runs/1"))
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetRun(run.ID, corral.RunTasks{Total: 5, Done: 3, Failed: 1, Ready: 1}, nil)
		return err
	})
	w.view(func(tx *store.Tx) error {
		for object, want := range map[string][]store.Count{
			corral.ObjectSite:    {{State: "READY", N: 1}},
			corral.ObjectRun:     {{State: "RUNNING", N: 1}},
			corral.ObjectGlidein: {{Site: "local", State: "ACTIVE", N: 1}},
			corral.ObjectJob:     {{Site: "local", State: "RUNNING", N: 1}, {Site: "local", State: "SUBMITTED", N: 1}},
		} {
			got, err := tx.Counts(object)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", object, got, err, want)
			}
		}
		if _, err := tx.Counts(corral.ObjectMirror); corral.KindOf(err) != corral.Internal {
			t.Errorf("of what nobody counts: %v", err)
		}
		if done, failed, err := tx.TasksEnded(); err != nil || done != 3 || failed != 1 {
			t.Errorf("%d tasks done, %d failed, %v", done, failed, err)
		}
		oldest, err := tx.OldestQueued()
		if err != nil || len(oldest) != 1 || !oldest["local"].Equal(j.SubmittedAt) {
			t.Errorf("in the queue since %v, %v, want %v", oldest, err, j.SubmittedAt)
		}
		return nil
	})
}
