package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(w.path + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got != 0o600 {
			t.Errorf("mode of corral.db%s = %v, want %v", name, got, fs.FileMode(0o600))
		}
	}
}

func TestOpenTightensMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "100%", "what?", "x#y", "é", "a&b=c", "%41"} {
		path := filepath.Join(t.TempDir(), name)
		if err := create(t.Context(), path); err != nil {
			t.Errorf("Open(%q): %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefusesASecondHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	err = create(t.Context(), path)
	if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second Open: %v, want a conflict that names process %d", err, os.Getpid())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := create(t.Context(), path); err != nil {
		t.Errorf("Open after Close: %v", err)
	}
}

func TestOpenRefusesOtherDatabases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ statement, says string }{
		{"pragma user_version = 999", "use the newer corrald that wrote it"},
		{"create table sites (id integer primary key); pragma user_version = 1", "remove all of corral.db* to begin"},
		{"create table sites (id integer primary key); pragma user_version = 22", "remove all of corral.db* to begin"},
		{"create table recipes (id integer primary key)", "%s is a database of another program"},
		{"create table t (a); pragma user_version = -1", "%s is a database of another program"},
	} {
		t.Run(c.statement, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "corral.db")
			if _, err := raw(t, path).Exec(c.statement); err != nil {
				t.Fatal(err)
			}
			says := strings.ReplaceAll(c.says, "%s", path)
			err := create(t.Context(), path)
			if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), says) {
				t.Errorf("Open: %v, want a conflict that says %q", err, says)
			}
			_, err = store.Inspect(t.Context(), path)
			if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), says) {
				t.Errorf("Inspect: %v, want a conflict that says %q", err, says)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{junk, dir, filepath.Join(dir, "missing", "corral.db")} {
		if err := create(t.Context(), path); err == nil {
			t.Errorf("Open(%q) = nil", path)
		}
	}
}

func TestWriteChangesNothingIfItFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boom := errors.New("boom")
	create := func(tx *store.Tx) error {
		_, err := tx.CreateSite(newSite("second"))
		return err
	}
	cancelled, cancel := context.WithCancel(t.Context())
	for name, write := range map[string]func() error{
		"fn fails": func() error {
			return storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error { return errors.Join(create(tx), boom) })
		},
		"fn panics": func() (err error) {
			defer func() { err = recover().(error) }()
			return storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error { panic(errors.Join(create(tx), boom)) })
		},
		"fn swallows a failed statement": func() error {
			return storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error {
				_, _ = tx.CreateSite(corral.Site{})
				return create(tx)
			})
		},
		"no actor": func() error { return storetest.All(w.db).Write(t.Context(), "", create) },
		"context ends": func() error {
			return storetest.All(w.db).Write(cancelled, actor, func(tx *store.Tx) error { defer cancel(); return create(tx) })
		},
	} {
		changed := w.db.Changed(store.Subject{})
		if err := write(); err == nil {
			t.Errorf("%s: no error", name)
		}
		w.view(func(tx *store.Tx) error {
			if s, err := tx.Sites(store.Filter{All: true}); len(s) != 1 || err != nil {
				t.Errorf("%s: sites = %v, %v", name, s, err)
			}
			return nil
		})
		if closed(changed) {
			t.Errorf("%s: told of a change", name)
		}
	}
	w.write(create) // the one writer is available again
}

func TestWriteReturnsTheErrorOfFn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boom := errors.New("boom")
	fn := func(*store.Tx) error { return boom }
	if err := storetest.All(w.db).Write(t.Context(), actor, fn); err != boom {
		t.Errorf("Write = %v, want %v", err, boom)
	}
	if err := storetest.All(w.db).View(t.Context(), fn); err != boom {
		t.Errorf("View = %v, want %v", err, boom)
	}
}

func TestAfterCloseIsUnavailable(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "corral.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	fn := func(*store.Tx) error { return nil }
	for name, err := range map[string]error{"View": storetest.All(db).View(t.Context(), fn), "Write": storetest.All(db).Write(t.Context(), actor, fn)} {
		if corral.KindOf(err) != corral.Unavailable {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// A temporary database failure is not reported as an internal error: the caller may retry.
func TestFailureThatMayPassIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var inside error
	err := storetest.All(w.db).Write(ctx, actor, func(tx *store.Tx) error {
		cancel()
		_, inside = tx.CreateSite(newSite("second"))
		return nil
	})
	for _, err := range []error{inside, err, storetest.All(w.db).View(ctx, func(*store.Tx) error { return nil })} {
		if corral.KindOf(err) != corral.Unavailable {
			t.Errorf("after the context ended: %v, want %s", err, corral.Unavailable)
		}
	}
}

func TestViewRefusesToWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := storetest.All(w.db).View(t.Context(), func(tx *store.Tx) error {
		_, err := tx.CreateSite(newSite("second"))
		return err
	})
	if corral.KindOf(err) != corral.Internal {
		t.Errorf("writing in a View: %v", err)
	}
}

// A View keeps its snapshot while Writes commit, and neither waits for the other.
func TestViewAndWriteDoNotMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.view(func(tx *store.Tx) error {
		for i := range 3 {
			if s, err := tx.Sites(store.Filter{}); len(s) != 1 || err != nil {
				t.Errorf("view sees %d sites, %v, want the one it began with", len(s), err)
			}
			w.write(func(tx *store.Tx) error {
				_, err := tx.CreateSite(newSite(fmt.Sprint("new-", i)))
				return err
			})
		}
		return nil
	})
	w.write(func(tx *store.Tx) error {
		if _, err := tx.CreateSite(newSite("last")); err != nil {
			return err
		}
		w.view(func(tx *store.Tx) error { // a reader inside the writer sees only committed data
			if s, err := tx.Sites(store.Filter{}); len(s) != 4 || err != nil {
				t.Errorf("view sees %d sites, %v, want 4", len(s), err)
			}
			return nil
		})
		return nil
	})
}

func TestTransactionHasOneTimeAndOneActor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if tx.Actor() != actor {
			t.Errorf("Actor = %q", tx.Actor())
		}
		s, err := tx.CreateSite(newSite("second"))
		if err != nil {
			return err
		}
		if !s.CreatedAt.Equal(tx.Now()) || s.CreatedAt.Nanosecond()%1e6 != 0 || s.CreatedAt.Location().String() != "UTC" {
			t.Errorf("created at %v, now %v", s.CreatedAt, tx.Now())
		}
		entries, err := tx.History(corral.ObjectSite, int64(s.ID), store.Page{})
		if len(entries) != 1 || entries[0].Actor != actor || !entries[0].At.Equal(tx.Now()) {
			t.Errorf("history %v, now %v", entries, tx.Now())
		}
		return err
	})
}
