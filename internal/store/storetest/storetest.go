// Package storetest opens databases for tests.
package storetest

import (
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/internal/access"
	"github.com/corral-pilot/corral/internal/store"
)

// All opens transactions that see and change the rows of all owners, as an administrator's requests do.
func All(db *store.DB) store.Owner { return db.Caller(access.Local) }

// OpenTest opens a new database in a temporary directory of t and closes it when t ends. Inside a
// synctest bubble call it within the bubble, so that its clock is the bubble's.
func OpenTest(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "corral.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
