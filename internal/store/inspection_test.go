package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/dbcheck"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// filled creates a database of several hundred pages and closes it.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	db := begin(t, path)
	for i := range 300 {
		err := storetest.All(db).Write(t.Context(), "test", func(tx *store.Tx) error {
			_, err := tx.CreateSite(corral.Site{Name: fmt.Sprint("s", i), Contact: "local:", Batch: "fork",
				Owner: "local", Root: "/" + strings.Repeat("r", 3000)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// begin opens a database that the test itself closes.
func begin(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// garble overwrites length bytes at offset.
func garble(t *testing.T, path string, offset, length int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(length)), offset)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A damaged database is neither opened nor backed up. The error names the file, the damage and the remedy; the record
// beside the database also contains the damage until a check finds the database intact.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string, size int64){
		"32 KiB in the middle": func(t *testing.T, path string, size int64) { garble(t, path, size/2, 32<<10) },
		"the header":           func(t *testing.T, path string, _ int64) { garble(t, path, 0, 100) },
		"the schema":           func(t *testing.T, path string, _ int64) { garble(t, path, 100, 3996) },
		"the second half": func(t *testing.T, path string, size int64) {
			if err := os.Truncate(path, size/2); err != nil {
				t.Fatal(err)
			}
		},
		"all": func(t *testing.T, path string, _ int64) {
			if err := os.WriteFile(path, []byte("damaged\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			good := path + ".good"
			if _, err := store.Snapshot(t.Context(), path, good); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			damage(t, path, info.Size())
			db, err := store.Open(t.Context(), path)
			if err == nil {
				t.Error(db.Close())
			}
			refused(t, err, path, "corral admin restore --force --state "+filepath.Dir(path)+" FILE")
			recordIs(t, path, dbcheck.Start, false)

			_, err = store.Snapshot(t.Context(), path, path+".copy")
			refused(t, err, path, "no backup was made, and earlier ones stay")
			recordIs(t, path, dbcheck.Backup, false)

			if err := os.Rename(good, path); err != nil {
				t.Fatal(err)
			}
			if err := begin(t, path).Close(); err != nil {
				t.Error(err)
			}
			recordIs(t, path, dbcheck.Start, true)
		})
	}
}

// If a start does not wait for the check, the database is served, and Guard reports the damage.
func TestDamageIsFoundLater(t *testing.T) {
	t.Parallel()
	path := filled(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenWithin(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	garble(t, path, info.Size()/2, 32<<10)
	if db, err = store.OpenWithin(t.Context(), path, 0); err == nil { // otherwise the check finished before the start
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err = errors.Join(db.Guard(ctx), db.Close())
	}
	refused(t, err, path)
	recordIs(t, path, dbcheck.Start, false)
}

// refused expects a Failed error that contains all of what.
func refused(t *testing.T, err error, what ...string) {
	t.Helper()
	for _, want := range append(what, "is damaged (") {
		if corral.KindOf(err) != corral.Failed || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v (%s), want a Failed one with %q", err, corral.KindOf(err), want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "\n") {
		t.Errorf("the error is not one line: %q", err)
	}
}

// recordIs expects the database's record to be by this program.
func recordIs(t *testing.T, path string, by dbcheck.Source, whole bool) {
	t.Helper()
	r, found, err := dbcheck.Read(path)
	if err != nil || !found || r.By != by || r.Whole() != whole {
		t.Errorf("the record is %+v (%v, %v), want one by %s, whole: %v", r, found, err, by, whole)
	}
}

// If the file of an open database, or its lock, is removed or replaced, this is noticed and no more writes are
// accepted. The replacement is not changed.
func TestGuardNoticesChangesToTheFiles(t *testing.T) {
	t.Parallel()
	remove := func(path string) error { return os.Remove(path) }
	replace := func(path string) error {
		return errors.Join(os.WriteFile(path+".other", []byte("other"), 0o600), os.Rename(path+".other", path))
	}
	for name, tt := range map[string]struct {
		file string
		do   func(string) error
		says string
	}{
		"removed":       {"", remove, "the database %s was removed while"},
		"replaced":      {"", replace, "the database %s was replaced by another file while"},
		"moved":         {"", func(path string) error { return os.Rename(path, path+".old") }, "the database %s was removed while"},
		"lock removed":  {".lock", remove, "the lock of the database, %s was removed while"},
		"lock replaced": {".lock", replace, "the lock of the database, %s was replaced"},
		"folder moved": {"", func(path string) error {
			dir := filepath.Dir(path)
			return os.Rename(dir, dir+".old")
		}, "the database %s was removed while"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "a.db")
			db := begin(t, path)
			quiet, cancel := context.WithCancel(t.Context())
			cancel()
			if err := db.Guard(quiet); err != nil {
				t.Fatalf("before anything happened: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			noticed := make(chan error, 1)
			go func() { noticed <- db.Guard(ctx) }()
			if err := tt.do(path + tt.file); err != nil {
				t.Fatal(err)
			}
			err := <-noticed
			want := fmt.Sprintf(tt.says, path+tt.file)
			if corral.KindOf(err) != corral.Conflict || !strings.Contains(fmt.Sprint(err), want) ||
				!strings.Contains(fmt.Sprint(err), "corral admin restore") {
				t.Errorf("Guard: %v, want %q", err, want)
			}
			if err := db.Seal(); err != nil {
				t.Error(err)
			}
			err = storetest.All(db).Write(t.Context(), "test", func(*store.Tx) error { return nil })
			if corral.KindOf(err) != corral.Unavailable {
				t.Errorf("a Write after the file was lost: %v", err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadFile(path); name == "replaced" && string(left) != "other" {
				t.Errorf("the other file holds %q (%v)", left, err)
			}
		})
	}
}

// A missing database is not replaced by an empty one unless its record is also missing.
func TestMissingDatabaseIsNotRecreated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := begin(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), path)
	if err == nil {
		t.Fatal("it was opened", db.Close())
	}
	if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "remove "+dbcheck.File(path)) {
		t.Errorf("Open: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an empty database was made")
	}
	if err := os.Remove(dbcheck.File(path)); err != nil {
		t.Fatal(err)
	}
	if err := begin(t, path).Close(); err != nil {
		t.Error(err)
	}
}

// Holder names the process that has the database open, and changes nothing.
func TestHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	holds := func(want int) {
		t.Helper()
		if pid, err := store.Holder(path); pid != want || err != nil {
			t.Errorf("Holder = %d, %v, want %d", pid, err, want)
		}
	}
	holds(0)
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("Holder leaves %v", left)
	}
	db := begin(t, path)
	holds(os.Getpid())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	holds(0)
}
