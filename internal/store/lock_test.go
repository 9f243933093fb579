package store_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A lock that is released a moment later belongs to a killed process: its last child may hold a copy until it has
// executed its program. A lock that stays belongs to a running process.
func TestOpenWaitsForLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	hold := func() *os.File {
		lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		return lock
	}
	lock := hold()
	if _, err := store.Open(t.Context(), path); corral.KindOf(err) != corral.Conflict {
		t.Fatalf("Open of a database in use: %v, want a conflict", err)
	}
	var db *store.DB
	var err error
	for range 20 { // on a busy machine a moment may be as long as Open's patience
		time.AfterFunc(50*time.Millisecond, func() { lock.Close() })
		if db, err = store.Open(t.Context(), path); corral.KindOf(err) != corral.Conflict {
			break
		}
		lock = hold()
	}
	if err != nil {
		t.Fatalf("Open of a database whose user is gone: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
