package store_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// If the clock is set back, nothing fails: objects that change get the time of their last change again.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g)
	r := w.createRun(w.newRun("/runs/1"))
	p := w.createPlan(w.newPlan())
	future := j.CreatedAt.AddDate(1, 0, 0)
	file := raw(t, w.path)
	for _, table := range []string{"sites", "clusters", "glideins", "jobs", "runs", "plans"} {
		_, err := file.Exec("update "+table+" set created_at_ms = ?1, updated_at_ms = ?1", future.UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
	}
	j = w.move(j, submitted, started, ended(corral.OutcomeIdle))
	if !j.SubmittedAt.Equal(future) || !j.EndedAt.Equal(future) || !j.UpdatedAt.Equal(future) {
		t.Errorf("submitted at %v, ended at %v, updated at %v, want %v", j.SubmittedAt, j.EndedAt, j.UpdatedAt, future)
	}
	w.write(func(tx *store.Tx) (err error) {
		if r, err = tx.MoveRun(r.ID, corral.RunFail, ""); err != nil || !r.EndedAt.Equal(future) {
			t.Errorf("run ended at %v, %v, want %v", r.EndedAt, err, future)
		}
		if p, err = tx.MovePlan(p.ID, corral.PlanProvision, ""); err != nil || !p.BeganAt.Equal(future) {
			t.Errorf("plan began at %v, %v, want %v", p.BeganAt, err, future)
		}
		if g, err = tx.AskGlidein(g.ID, corral.AskDrain, ""); err != nil || !g.UpdatedAt.Equal(future) {
			t.Errorf("glidein updated at %v, %v, want %v", g.UpdatedAt, err, future)
		}
		if s, err := tx.MoveSite(w.site.ID, corral.SiteRemove, ""); err != nil || !s.UpdatedAt.Equal(future) {
			t.Errorf("site updated at %v, %v, want %v", s.UpdatedAt, err, future)
		}
		if c, err := tx.RemoveCluster(w.cluster.ID, ""); err != nil || !c.UpdatedAt.Equal(future) {
			t.Errorf("cluster updated at %v, %v, want %v", c.UpdatedAt, err, future)
		}
		return nil
	})
}

// Attempts whose recorded end is in the future, because the clock was wrong, do not put a site on hold.
func TestHoldWithoutTheFuture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range corral.HoldAfter {
		w.attempt(w.createGlidein(w.newGlidein()), submitted, ended(corral.OutcomeFailed))
	}
	held := func() corral.Hold {
		var told []corral.Job
		w.view(func(tx *store.Tx) (err error) { told, err = tx.Told(w.site.ID); return err })
		return corral.NewHold(told)
	}
	if got := held(); got.Until.IsZero() {
		t.Errorf("before: %+v", got)
	}
	if _, err := raw(t, w.path).Exec("update jobs set ended_at_ms = ended_at_ms + 86400000, updated_at_ms = updated_at_ms + 86400000"); err != nil {
		t.Fatal(err)
	}
	if got := held(); got != (corral.Hold{}) {
		t.Errorf("after the clock was set back by a day: %+v", got)
	}
}
