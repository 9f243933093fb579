package store_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

func (w *world) newEnsemble(files string) record.Ensemble {
	return record.Ensemble{Owner: actor, Name: "night", Cluster: w.cluster.ID, Files: files,
		Goal:     record.Goal{Budget: "2ch", Deadline: corral.Seconds(20 * time.Minute), Algorithm: "rehearsal"},
		Pilots:   record.Pilots{Site: "local", SiteID: w.site.ID, CPUs: 2, Walltime: corral.Seconds(time.Hour), Most: 4},
		Choice:   json.RawMessage(`{"algorithm":"dpds"}`),
		Progress: record.Progress{Members: []record.Member{{Workflow: "a", Tasks: 3, Standing: record.Waiting}}, Spent: "0ch"}}
}

// The spending of an ensemble and the states of its workflows change as it progresses; the values with which it was
// created do not.
func TestEnsembleLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var e record.Ensemble
	w.write(func(tx *store.Tx) (err error) { e, err = tx.CreateEnsemble(w.newEnsemble("x")); return err })
	if e.ID != 1 || e.State != record.Running || e.ClusterName != "default" || e.CreatedAt.IsZero() {
		t.Errorf("ensemble %+v", e)
	}
	w.write(func(tx *store.Tx) (err error) {
		p := e.Progress
		p.Steps, p.Spent, p.Members = 1, "0.5ch", slices.Clone(p.Members)
		p.Members[0].Standing, p.Members[0].Run = record.Begun, 7
		e, err = tx.SetEnsemble(1, p)
		return err
	})
	w.view(func(tx *store.Tx) error {
		got, err := tx.Ensemble(1)
		open, err2 := tx.OpenEnsembles()
		if diff := cmp.Diff(e, got); diff != "" || err != nil || err2 != nil || len(open) != 1 || got.Members[0].Run != 7 {
			t.Errorf("Ensemble: %v %v, %d open %s", err, err2, len(open), diff)
		}
		return nil
	})
	move := func(move record.Move, reason string) func(*store.Tx) error {
		return func(tx *store.Tx) (err error) { e, err = tx.MoveEnsemble(1, move, reason); return err }
	}
	w.refused(corral.Conflict, move(record.End, ""))
	w.write(move(record.Stop, "its deadline has passed"))
	w.write(move(record.End, ""))
	if e.EndedAt.IsZero() || e.Reason != "its deadline has passed" {
		t.Errorf("ended ensemble %+v", e)
	}
	w.write(func(tx *store.Tx) error { _, err := tx.CreateEnsemble(w.newEnsemble("y")); return err })
	w.write(move(record.Remove, ""))
	want := "create >RUNNING, stop RUNNING>ENDING, end ENDING>ENDED, remove ENDED>DELETED"
	if got := w.story(corral.ObjectEnsemble, 1); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}
