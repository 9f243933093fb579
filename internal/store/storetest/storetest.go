// Package storetest opens databases for tests.
package storetest

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// All opens transactions that see and change the rows of all owners, like an administrator's requests.
func All(db *store.DB) store.Owner { return db.Caller(access.Local) }

// OpenTest opens a new database in a temporary directory of t and closes it when t ends. In a synctest test, call it
// inside the bubble, so that it uses the bubble's clock.
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

var paths sync.Map // *store.DB :: path

// Path returns the file of a database that OpenTest has opened.
func Path(db *store.DB) string {
	path, _ := paths.Load(db)
	return path.(string)
}
