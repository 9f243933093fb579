package run

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// While the reason why a run does not progress cannot be stored, its note is shown.
func TestANoteStandsForWhatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newSimCluster())
	defer w.stop()
	now := time.Now()
	id := corral.RunID(1) // not in the store, which therefore refuses the write
	p := &progress{lg: quiet(), db: w.db.Owner("local"), row: corral.Run{ID: id, State: corral.RunRunning}, notes: &w.manager.notes}
	noted := func(s corral.RunState) string {
		return w.manager.Noted(corral.Run{ID: id, State: s, Reason: "as stored"})[0].Reason
	}
	if got := noted(corral.RunRunning); got != "as stored" {
		t.Errorf("before anything failed the run has %q", got)
	}
	p.save(asLocal(t), now, corral.RunTasks{Total: 1, Ready: 1}, "")
	if got := noted(corral.RunRunning); !strings.HasPrefix(got, "its progress cannot be saved: ") {
		t.Errorf("the run has %q", got)
	}
	p.save(asLocal(t), now.Add(time.Minute), corral.RunTasks{Total: 1, Ready: 1}, "no space left on device")
	if got := noted(corral.RunRunning); got != "no space left on device" {
		t.Errorf("the run has %q", got)
	}
	if got := noted(corral.RunFailed); got != "as stored" {
		t.Errorf("once it is over the run has %q", got)
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreateRun(corral.Run{Owner: "local", Cluster: w.cluster, Workflow: "w", Dir: "/w"})
		return err
	})
	p.save(asLocal(t), now.Add(time.Hour), corral.RunTasks{Total: 1, Ready: 1}, "no space left on device")
	if got := noted(corral.RunRunning); got != "as stored" {
		t.Errorf("after the store was told the run has %q", got)
	}
}

// An active run has an expected end, as long as it is known.
func TestExpectedEnds(t *testing.T) {
	t.Parallel()
	var m Manager
	at := time.Now().Add(time.Hour)
	ends := func(s corral.RunState) time.Time {
		return m.Noted(corral.Run{ID: 7, State: s})[0].ExpectedEnd
	}
	m.notes.expect(7, at)
	m.notes.keeps(7, "")
	if got := ends(corral.RunRunning); !got.Equal(at) {
		t.Errorf("it is expected to end at %s, want %s", got, at)
	}
	for _, s := range []corral.RunState{corral.RunCancelling, corral.RunSucceeded} {
		if got := ends(s); !got.IsZero() {
			t.Errorf("when it is %s it is expected to end at %s", s, got)
		}
	}
	m.notes.expect(7, time.Now().Add(-time.Second))
	if got := ends(corral.RunRunning); !got.IsZero() {
		t.Errorf("it was expected to end at %s, which is over", got)
	}
	m.Expect(7, at.Add(time.Minute), true)
	m.notes.expect(7, at)
	if got := ends(corral.RunRunning); !got.Equal(at.Add(time.Minute)) {
		t.Errorf("it is expected to end at %s, want the end by its plan's revision", got)
	}
	m.Expect(7, time.Time{}, false)
	m.notes.expect(7, at)
	if got := ends(corral.RunRunning); !got.Equal(at) {
		t.Errorf("without revisions it is expected to end at %s, want %s", got, at)
	}
	m.notes.forget(7)
	if got := ends(corral.RunRunning); !got.IsZero() || len(m.notes.of) > 0 {
		t.Errorf("after it was forgotten it is expected to end at %s", got)
	}
}
