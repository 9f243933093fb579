package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// Entries of histories are deleted once they are too old, regardless of their number; their objects stay.
func TestOldHistoryIsDeleted(t *testing.T) {
	t.Parallel()
	db := storetest.OpenTest(t)
	var mirror corral.Mirror
	err := storetest.All(db).Write(t.Context(), "local", func(tx *store.Tx) (err error) {
		mirror, err = tx.CreateMirror(corral.Mirror{Name: "m", Owner: "local", URL: "http://m"})
		for i := 0; i < 2*entriesAWrite+7 && err == nil; i++ {
			err = tx.Log(corral.ObjectMirror, int64(mirror.ID), "note", fmt.Sprint(i))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left := func() int {
		entries, err := store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) ([]corral.Entry, error) {
			return tx.History(corral.ObjectMirror, int64(mirror.ID), store.Page{})
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	all := left()
	for _, tt := range []struct {
		later, keep time.Duration
		want        int
	}{{time.Hour, 0, all}, {time.Hour, 2 * time.Hour, all}, {3 * time.Hour, 2 * time.Hour, 0}} {
		if err := forgetHistory(t.Context(), db, time.Now().Add(tt.later), tt.keep); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != tt.want {
			t.Errorf("after %s, with %s kept, %d entries are left, want %d", tt.later, tt.keep, got, tt.want)
		}
	}
	if _, err := store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) (corral.Mirror, error) { return tx.Mirror(mirror.ID) }); err != nil {
		t.Errorf("the mirror: %v", err)
	}
}

// A log that this process does not write is not shortened, regardless of its length.
func TestForeignLogIsNotShortened(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "corrald.log")
	if err := cutLog(name, 1); err != nil {
		t.Errorf("without a log: %v", err)
	}
	if err := os.WriteFile(name, []byte("long enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cutLog(name, 1); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(name); string(b) != "long enough" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
