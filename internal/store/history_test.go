package store_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g)
	r := w.createRun(w.newRun("/runs/1"))
	p := w.createPlan(w.newPlan())
	for _, c := range []struct {
		object string
		id     int64
		state  string
	}{
		{corral.ObjectSite, int64(w.site.ID), "READY"},
		{corral.ObjectGlidein, int64(g.ID), "ACTIVE"},
		{corral.ObjectJob, int64(j.ID), "NEW"},
		{corral.ObjectCluster, int64(w.cluster.ID), "READY"},
		{corral.ObjectRun, int64(r.ID), "RUNNING"},
		{corral.ObjectPlan, int64(p.ID), "READY"},
	} {
		w.write(func(tx *store.Tx) error { return tx.Log(c.object, c.id, "note", "by the way") })
		w.view(func(tx *store.Tx) error {
			entries, err := tx.History(c.object, c.id, store.Page{})
			want := corral.Entry{Actor: actor, Object: c.object, Of: c.id, Event: "note", From: c.state, To: c.state, Reason: "by the way"}
			got := entries[len(entries)-1]
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(corral.Entry{}, "ID", "At")); diff != "" {
				t.Error(diff)
			}
			return err
		})
		w.refused(corral.NotFound, func(tx *store.Tx) error { return tx.Log(c.object, 99, "note", "") })
	}
	w.refused(corral.Internal, func(tx *store.Tx) error { return tx.Log("planet", 1, "note", "") })
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var events []string
	w.view(func(tx *store.Tx) error {
		var page store.Page
		for page.Limit = 2; ; {
			entries, err := tx.History(corral.ObjectSite, int64(w.site.ID), page)
			if err != nil || len(entries) == 0 {
				return err
			}
			for _, e := range entries {
				events = append(events, e.Event)
				page.After = e.ID
			}
		}
	})
	if diff := cmp.Diff([]string{"create", "stage", "staged"}, events); diff != "" {
		t.Error(diff)
	}
}
