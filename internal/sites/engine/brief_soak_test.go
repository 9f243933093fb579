//go:build soak

package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
)

// Regardless of the states of a glidein's attempts, a decision based on the attempts read in brief equals the decision
// based on all.
func TestNoDecisionNeedsAllAttempts(t *testing.T) {
	t.Parallel()
	l := newLongLives(t)
	policies := []resubmit.Policy{{}, {Retries: 2}, {Mode: resubmit.Times, Limit: 2, Retries: 3}, {Mode: resubmit.Times, Limit: 5, Retries: 3},
		{Mode: resubmit.Forever}, {Mode: resubmit.Forever, Retries: 30}, {Mode: resubmit.Until, Deadline: time.Now().Add(time.Minute), Retries: 1}}
	usual := slices.Repeat([]corral.Outcome{corral.OutcomeExpired, corral.OutcomeExpired, corral.OutcomeLost, ""}, 4) // other outcomes end most glideins
	rapid.Check(t, func(t *rapid.T) {
		g := l.glidein(corral.Glidein{
			Resubmit: rapid.SampledFrom(policies).Draw(t, "policy"),
			Shape:    corral.Shape{Walltime: corral.Seconds(time.Hour)},
			Overlap:  corral.Seconds(rapid.SampledFrom([]time.Duration{0, time.Minute, 59 * time.Minute}).Draw(t, "overlap")),
		})
		outcomes := rapid.SliceOfN(rapid.SampledFrom(slices.Concat(corral.Outcomes, usual)), 0, 12).Draw(t, "outcomes")
		l.write(func(tx *store.Tx) error {
			for _, o := range outcomes {
				life := []corral.JobEvent{{Move: corral.JobSubmit, SiteJobID: "4711"}, {Move: corral.JobStart}}
				if o != "" {
					life = append(life, corral.JobEvent{Move: corral.JobEnd, Outcome: o, Transient: rapid.Bool().Draw(t, "transient"), Reason: "drawn"})
				}
				if err := l.attempt(tx, g.ID, life...); err != nil {
					return err
				}
			}
			return nil
		})
		brief := l.load()
		whole := brief
		err := storetest.All(l.db).View(l.Context(), func(tx *store.Tx) (err error) {
			whole.Glideins, err = tx.Glideins(store.GlideinFilter{Site: 1, Live: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 3 * time.Second, 2 * time.Minute, time.Hour, 8 * 24 * time.Hour} {
			now := time.Now().UTC().Add(after)
			if diff := cmp.Diff(reconcile.Decide(now, whole), reconcile.Decide(now, brief)); diff != "" {
				t.Fatalf("%s later something else is decided (-of all +in brief):\n%s", after, diff)
			}
			if want, got := reconcile.Due(now, whole), reconcile.Due(now, brief); !got.Equal(want) {
				t.Fatalf("%s later something is due at %s, of all at %s", after, got, want)
			}
		}
		l.write(func(tx *store.Tx) error { // end it before the next one
			_, err := tx.AskGlidein(g.ID, corral.AskCancel, "test")
			for _, a := range liveJobs(brief) {
				if err == nil {
					_, err = tx.MoveJob(a.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved})
				}
			}
			return err
		})
	})
}
