package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// corrald's own requests are reported once they are committed, with the owner and the reason given in the history.
// Users' requests, their results, and uncommitted requests are not reported.
func TestActsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told []string
	w.db.OnAct(func(a store.Act) {
		told = append(told, fmt.Sprintf("%s: %s %d %s: %s", a.Owner, a.Object, a.Of, a.Event, a.Reason))
	})
	w.createGlidein(w.newGlidein()) // by a user
	ask := func(err error) error {
		return w.db.Owner(actor).Write(t.Context(), store.Actor, func(tx *store.Tx) error {
			tx.Because("the scale of cluster default: 5 jobs wait")
			g, failed := tx.CreateGlidein(w.newGlidein())
			if failed == nil {
				_, failed = tx.AskGlidein(g.ID, corral.AskDrain, "no job needs it")
			}
			if failed != nil {
				t.Error(failed)
			}
			return err
		})
	}
	lost := corral.Errorf(corral.Conflict, "not this time")
	if err := ask(lost); err != lost {
		t.Error(err)
	}
	if err := ask(nil); err != nil {
		t.Error(err)
	}
	want := []string{actor + ": glidein 2 create: the scale of cluster default: 5 jobs wait", actor + ": glidein 2 drain: no job needs it"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := w.story(corral.ObjectGlidein, 2); len(got) == 0 {
		t.Errorf("the history of glidein 2 is %q", got)
	}
}
