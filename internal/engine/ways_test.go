package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

func TestChooseWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked Way
		known opening
		want  Way
	}{
		{WayAuto, opening{visible: true, fetchable: true}, WayLocal},
		{"", opening{visible: true}, WayLocal},
		{WayAuto, opening{fetchable: true}, WayMirrors},
		{WayAuto, opening{fetchable: true, unreached: true}, WayPush},
		{WayAuto, opening{}, WayPush},
		{WayMirrors, opening{visible: true}, WayMirrors},
		{WayPush, opening{visible: true, fetchable: true}, WayPush},
		{WayLocal, opening{fetchable: true}, WayLocal},
	} {
		if way, why := c.asked.choose(c.known); way != c.want || why == "" {
			t.Errorf("%q with %+v: %s (%s), want %s", c.asked, c.known, way, why, c.want)
		}
	}
}

// elsewhere is a site on this machine that does not see corrald's mirror.
type elsewhere struct{ gridsite.Head }

func (elsewhere) Sees(context.Context, string) (bool, error) { return false, nil }

// A site that no mirror answers to gets the package by push, and its history says what was tried.
func TestPushWhenNoMirrorAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
	t.Cleanup(clusters.Close)
	e := New(w.lg, w.db, clusters, w.cfg)
	e.open = func(ctx context.Context, s corral.Site) (gridsite.Access, error) {
		a, err := e.cfg.Reach.Open(ctx, s)
		a.Head = elsewhere{a.Head}
		return a, err
	}
	if err := e.catalog.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		m, err := tx.CreateMirror(corral.Mirror{Name: "silent", Owner: "local", URL: "http://" + vacant(t)})
		if err == nil {
			_, err = tx.CheckMirror(m.ID, []corral.PackageID{1}, "")
		}
		return err
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = e.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	s := w.site("far")
	w.siteIs(s.ID, corral.SiteReady)
	var ways, tries []string
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectSite, int64(s.ID), store.Page{})
		for _, entry := range entries {
			switch entry.Event {
			case "supply":
				ways = append(ways, entry.Reason)
			case "fetch":
				tries = append(tries, entry.Reason)
			}
		}
		return err
	})
	if len(ways) != 2 || !strings.Contains(ways[0], "by way of mirrors") || !strings.Contains(ways[1], "by way of push: no mirror answered") {
		t.Errorf("ways %q, want mirrors, then push", ways)
	}
	if len(tries) != 2 || !strings.Contains(tries[0], "connection refused") || !strings.Contains(tries[1], ".incoming") {
		t.Errorf("tries %q, want the silent mirror, then what was pushed", tries)
	}
}

// A newer build takes the place of the one before, unless a site uses that.
func TestRegisterSupersedes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := New(w.lg, w.db, nil, w.cfg).catalog
	stock := c.depot.stock[0]
	old := described(stock)
	old.Owner, old.Digest = Actor, "sha256:"+strings.Repeat("0", 64)
	imported := described(stock)
	imported.Owner, imported.Digest = "local", "sha256:"+strings.Repeat("1", 64)
	w.write(func(tx *store.Tx) error {
		for _, p := range []corral.Package{old, imported} {
			if _, err := tx.CreatePackage(p); err != nil {
				return err
			}
		}
		return nil
	})
	for range 2 { // a restart changes nothing
		if err := c.register(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var left []corral.PackageID
	w.view(func(tx *store.Tx) error {
		all, err := tx.Packages(store.Filter{})
		for _, p := range all {
			left = append(left, p.ID)
		}
		return err
	})
	if len(left) != 2 || left[0] != 2 || left[1] != 3 {
		t.Errorf("packages %v are left, want what was imported, 2, and the new build, 3", left)
	}
}

// The pilot of an imported package is taken out of its archive.
func TestBinaryOfAnImportedPackage(t *testing.T) {
	t.Parallel()
	s := depot.stock[0]
	d := OpenDepot(t.TempDir(), depot.signer)
	archive, err := depot.mirror.Path(s.Package)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.mirror.Add(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := d.binary(s.Package)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		f.Close()
		if want, err2 := os.Stat(filepath.Clean(depot.pilots[s.Digest])); err != nil || err2 != nil || info.Size() != want.Size() {
			t.Errorf("binary has %d bytes (%v), want those of %v (%v)", info.Size(), err, want, err2)
		}
	}
}
