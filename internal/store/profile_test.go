package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

func (w *world) createProfile(owner, name string) (p corral.Profile) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) { p, err = tx.CreateProfile(newProfile(owner, name)); return err })
	return p
}

func newProfile(owner, name string) corral.Profile {
	return corral.Profile{Owner: owner, Name: name, Sources: []string{"run:1"}, Runs: 1, Kinds: 2, Tasks: 30,
		Digest: digest, Document: json.RawMessage(`{"version":1}`)}
}

func TestProfileKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createProfile(actor, "seismic")
	want := newProfile(actor, "seismic")
	want.ID, want.State, want.CreatedAt, want.UpdatedAt = 1, corral.ProfileReady, p.CreatedAt, p.CreatedAt
	if diff := cmp.Diff(want, p); diff != "" || p.CreatedAt.IsZero() {
		t.Errorf("created: %s", diff)
	}
	w.view(func(tx *store.Tx) error {
		got, err := tx.ProfileNamed(actor, "seismic")
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Errorf("ProfileNamed: %v %s", err, diff)
		}
		all, err := tx.Profiles(store.Filter{})
		want.Document = nil
		if diff := cmp.Diff([]corral.Profile{want}, all); diff != "" || err != nil {
			t.Errorf("Profiles: %v %s", err, diff)
		}
		return nil
	})
}

// TestProfileNamesAreTheirOwners: two owners may use the same name, and a name is free again once its profile is
// DELETED, which also removes the document.
func TestProfileNamesAreTheirOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, yours := w.createProfile(actor, "seismic"), w.createProfile("bo", "seismic")
	w.refused(corral.Conflict, func(tx *store.Tx) error {
		_, err := tx.CreateProfile(newProfile(actor, "seismic"))
		return err
	})
	remove := func(tx *store.Tx) (err error) { mine, err = tx.DeleteProfile(mine.ID, "old"); return err }
	w.write(remove)
	w.refused(corral.Conflict, remove)
	if mine.State != corral.ProfileDeleted || mine.Document != nil {
		t.Errorf("deleted %+v", mine)
	}
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.ProfileNamed(actor, "seismic"); return err })
	w.view(func(tx *store.Tx) error {
		if p, err := tx.ProfileNamed("bo", "seismic"); err != nil || p.ID != yours.ID {
			t.Errorf("the other's: %+v %v", p, err)
		}
		all, err := tx.Profiles(store.Filter{})
		if len(all) != 1 {
			t.Errorf("%d are listed, want 1", len(all))
		}
		return err
	})
	w.createProfile(actor, "seismic")
}

// TestProfileGrows: merges are recorded in the history; a merge into an outdated profile is refused.
func TestProfileGrows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createProfile(actor, "seismic")
	p.Sources, p.Runs, p.Digest = append(p.Sources, "run:2", "table.csv"), 2, "sha256:"+strings.Repeat("2", 64)
	grow := func(tx *store.Tx) error { _, err := tx.GrowProfile(p, digest); return err }
	w.write(grow)
	w.refused(corral.Unavailable, grow)
	w.view(func(tx *store.Tx) error {
		got, err := tx.Profile(p.ID)
		if err != nil || got.Digest != p.Digest || got.Runs != 2 {
			t.Errorf("grown: %+v %v", got, err)
		}
		entries, err := tx.History(corral.ObjectProfile, int64(p.ID), store.Page{})
		if err != nil || entries[1].Reason != "run:2, table.csv" {
			t.Errorf("history: %+v %v", entries, err)
		}
		return nil
	})
	if story := w.story(corral.ObjectProfile, int64(p.ID)); story != "create >READY, merge READY>READY" {
		t.Errorf("story %s", story)
	}
	w.write(func(tx *store.Tx) error { _, err := tx.DeleteProfile(p.ID, ""); return err })
	w.refused(corral.Unavailable, func(tx *store.Tx) error { _, err := tx.GrowProfile(p, p.Digest); return err })
}
