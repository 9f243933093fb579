package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

func (w *world) askRemoval(id corral.SiteID) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(id, corral.SiteRemove, "test"); return err })
}

// The removal of a site deletes all that is below its root, so a root must be nobody else's.
func TestRootIsOursAlone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "thesis.tex"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(root string) error {
		return CheckSite(context.Background(), corral.Site{Name: "here", Contact: "local:", Batch: "fork", Root: root})
	}
	err := check(home)
	var e *corral.Error
	if !errors.As(err, &e) || e.Kind != corral.Invalid || e.Place != "root" || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a root with files of others: %v, want Invalid at root", err)
	}
	if err := check(filepath.Join(home, "new", "site")); err != nil {
		t.Errorf("a root that is not there: %v", err)
	}
	if err := check(t.TempDir()); err != nil {
		t.Errorf("an empty root: %v", err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("the check left %v (%v)", entries, err)
	}
}

// A site that was forgotten by force leaves its root, which may be used again.
func TestRootOfForgottenSiteIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(s.ID, corral.SiteForget, "test"); return err })
	if err := CheckSite(context.Background(), s); err != nil {
		t.Errorf("its root again: %v", err)
	}
}

// A site that failed before anything was brought there is removed all the same, and what others put
// below its root since is left alone.
func TestFailedSiteIsRemoved(t *testing.T) {
	t.Parallel()
	t.Run("no package for its platform", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.cfg.Depot = OpenDepot(t.TempDir())
		w.start()
		s := w.site("here")
		w.siteIs(s.ID, corral.SiteFailed)
		others := filepath.Join(s.Root, "file")
		if err := errors.Join(os.MkdirAll(s.Root, 0o700), os.WriteFile(others, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		w.askRemoval(s.ID)
		w.siteIs(s.ID, corral.SiteDeleted)
		if _, err := os.Lstat(others); err != nil {
			t.Errorf("what others put there: %v", err)
		}
	})
	t.Run("its root cannot be made", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if err := os.WriteFile(filepath.Join(w.dir, "here"), nil, 0o600); err != nil { // a file, no directory
			t.Fatal(err)
		}
		w.start()
		s := w.site("here")
		w.siteIs(s.ID, corral.SiteFailed)
		w.askRemoval(s.ID)
		w.siteIs(s.ID, corral.SiteDeleted)
		if _, err := os.Lstat(s.Root); err != nil {
			t.Errorf("the file in its place: %v", err)
		}
	})
}
