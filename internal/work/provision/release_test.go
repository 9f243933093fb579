package provision

import (
	"context"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// end makes the scene's pilot start and end.
func (s *scene) end() {
	s.t.Helper()
	s.works(0)
	s.write(func(tx *store.Tx) error {
		j, err := tx.JobTagged("tag")
		if err == nil {
			_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeIdle})
		}
		return err
	})
}

// kept checks plans once, as Keep does, and returns the scene's plan after that.
func (s *scene) kept() corral.Plan {
	s.t.Helper()
	if err := releaseEnded(s.t.Context(), s.db); err != nil {
		s.t.Fatal(err)
	}
	p, err := store.Read(s.t.Context(), storetest.All(s.db), func(tx *store.Tx) (corral.Plan, error) { return tx.PlanRow(s.plan.ID) })
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// TestPlanWithoutPilotsIsReleased: a plan is released once all of its pilots have ended, and not before. A plan that is
// revised may be assigned other pilots during its run.
func TestPlanWithoutPilotsIsReleased(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{false, true} {
		s := newScene(t, inTime, auto)
		if p := s.kept(); p.State != corral.PlanProvisioned {
			t.Errorf("auto %v: with a pilot to come the plan is %s: %s", auto, p.State, p.Reason)
		}
		s.end()
		want, why := corral.PlanReleased, goneReason
		if auto {
			want, why = corral.PlanProvisioned, ""
		}
		if p := s.kept(); p.State != want || p.Reason != why {
			t.Errorf("auto %v: without pilots the plan is %s: %q, want %s: %q", auto, p.State, p.Reason, want, why)
		}
	}
}

// TestKeepSeesPilotsEnd: a plan is released as soon as its last pilot ends.
func TestKeepSeesPilotsEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t, inTime, false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Keep(ctx, nil, s.db) }()
	s.end()
	for deadline := time.After(5 * time.Minute); ; {
		changed := s.db.Changed(store.Subject{Object: corral.ObjectPlan, ID: int64(s.plan.ID)})
		p, err := store.Read(t.Context(), storetest.All(s.db), func(tx *store.Tx) (corral.Plan, error) { return tx.PlanRow(s.plan.ID) })
		if err != nil || p.State == corral.PlanReleased {
			break
		}
		select {
		case <-changed:
			continue
		case <-deadline:
			t.Error("the plan is still PROVISIONED")
		}
		break
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
