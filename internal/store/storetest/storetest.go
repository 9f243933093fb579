// Package storetest opens databases for tests.
package storetest

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// All opens transactions that see and change the rows of all owners, as an administrator's requests do.
func All(db *store.DB) store.Owner { return db.Caller(access.Local) }

// OpenTest opens a new database in a temporary directory of t and closes it when t ends. Inside a
// synctest bubble call it within the bubble, so that its clock is the bubble's.
func OpenTest(t testing.TB) *store.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "corral.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	paths.Store(db, path)
	t.Cleanup(func() {
		paths.Delete(db)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

var paths sync.Map // *store.DB :: where it is

// Path returns where the file of a database is that OpenTest has opened.
func Path(db *store.DB) string {
	path, _ := paths.Load(db)
	return path.(string)
}
