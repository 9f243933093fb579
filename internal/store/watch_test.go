package store_test

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A watch reports each object once, however often it changed, and nothing after it is closed.
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

// Counts counts existing objects by owner, state and site.
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
			corral.ObjectSite:    {{Owner: g.Owner, State: "READY", N: 1}},
			corral.ObjectRun:     {{Owner: g.Owner, State: "RUNNING", N: 1}},
			corral.ObjectGlidein: {{Owner: g.Owner, Site: g.Site, State: "ACTIVE", N: 1}},
			corral.ObjectJob:     {{Owner: g.Owner, Site: g.Site, State: "RUNNING", N: 1}, {Owner: g.Owner, Site: g.Site, State: "SUBMITTED", N: 1}},
		} {
			got, err := tx.Counts(object)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", object, got, err, want)
			}
		}
		if _, err := tx.Counts(corral.ObjectMirror); corral.KindOf(err) != corral.Internal {
			t.Errorf("of what nobody counts: %v", err)
		}
		over := []store.TasksOver{{Owner: g.Owner, Done: 3, Failed: 1}}
		if got, err := tx.TasksEnded(); err != nil || !slices.Equal(got, over) {
			t.Errorf("tasks that ended: %v, %v, want %v", got, err, over)
		}
		oldest, err := tx.OldestQueued()
		if err != nil || len(oldest) != 1 || !oldest[g.Site].Equal(j.SubmittedAt) {
			t.Errorf("in the queue since %v, %v, want %v", oldest, err, j.SubmittedAt)
		}
		return nil
	})
}
