package delivery

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/packages"
)

// A world is a catalog over a real store and a real depot, whose pilot is a script.
type world struct {
	t       *testing.T
	db      *store.DB
	depot   *Depot
	catalog *Catalog
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	signer, err := packages.LoadSigner(filepath.Join(dir, "package.key"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: storetest.OpenTest(t), depot: OpenDepot(filepath.Join(dir, "cache"), signer)}
	if err := w.depot.AddPilot([]byte("#!/bin/sh\n"), "x86_64"); err != nil {
		t.Fatal(err)
	}
	w.catalog = NewCatalog(slog.New(slog.DiscardHandler), w.db, w.depot, nil)
	return w
}

func (w *world) write(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(context.Background(), "local", fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) view(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).View(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}
