package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// createPackage stores a package whose digest repeats one digit.
func (w *world) createPackage(digit string) (p corral.Package) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		p, err = tx.CreatePackage(corral.Package{Name: "p-1-x86_64-linux-static", Owner: actor, What: "p", Version: "1",
			Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"},
			Digest:   "sha256:" + strings.Repeat(digit, 64), SizeBytes: 7, Key: "ed25519:k", Signature: "s"})
		return err
	})
	return p
}

func (w *world) createMirror(name string) (m corral.Mirror) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		m, err = tx.CreateMirror(corral.Mirror{Name: name, Owner: actor, URL: "file:///" + name})
		return err
	})
	return m
}

func TestPackageLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, newer := w.createPackage("a"), w.createPackage("b")
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.CreatePackage(p); return err })
	w.view(func(tx *store.Tx) error {
		named, err := tx.PackageNamed(p.Name)
		if named.ID != newer.ID {
			t.Errorf("PackageNamed = %d, want the newest, %d", named.ID, newer.ID)
		}
		return err
	})
	use := func(digest string) {
		w.write(func(tx *store.Tx) error {
			_, err := tx.SetSite(w.site.ID, func(s *corral.Site) { s.Package, s.PackageDigest = "p", digest })
			return err
		})
	}
	remove := func(tx *store.Tx) error { _, err := tx.DeletePackage(p.ID, "old"); return err }
	use(p.Digest)
	w.refused(corral.Conflict, remove)
	use(newer.Digest)
	w.write(remove)
	w.refused(corral.Conflict, remove)
	w.view(func(tx *store.Tx) error {
		left, err := tx.Packages(store.Filter{})
		if len(left) != 1 || left[0].ID != newer.ID {
			t.Errorf("packages %+v, want only %d", left, newer.ID)
		}
		if _, err := tx.PackageOf(p.Digest); corral.KindOf(err) != corral.NotFound {
			t.Errorf("PackageOf a deleted one = %v", err)
		}
		history, err2 := tx.History(corral.ObjectPackage, int64(p.ID), store.Page{})
		if len(history) != 2 || history[1].Reason != "old" {
			t.Errorf("history %+v", history)
		}
		if err == nil {
			err = err2
		}
		return err
	})
	w.createPackage("a") // its digest is free again
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.createPackage("a"), w.createPackage("b")
	one, two := w.createMirror("one"), w.createMirror("two")
	w.refused(corral.Conflict, func(tx *store.Tx) error {
		_, err := tx.CreateMirror(corral.Mirror{Name: "three", Owner: actor, URL: one.URL})
		return err
	})
	check := func(m corral.Mirror, problem string, has ...corral.PackageID) {
		t.Helper()
		w.write(func(tx *store.Tx) error { _, err := tx.CheckMirror(m.ID, has, problem); return err })
	}
	want := func(p corral.Package, names ...string) {
		t.Helper()
		w.view(func(tx *store.Tx) error {
			got, err := tx.Package(p.ID)
			if diff := cmp.Diff(append([]string{}, names...), got.Mirrors); diff != "" {
				t.Errorf("mirrors of %d: %s", p.ID, diff)
			}
			list, err2 := tx.MirrorsOf(p.ID)
			if len(list) != len(names) {
				t.Errorf("MirrorsOf(%d) = %+v, want %v", p.ID, list, names)
			}
			if err == nil {
				err = err2
			}
			return err
		})
	}
	want(a)
	check(one, "", a.ID, b.ID)
	check(two, "", a.ID, a.ID)
	want(a, "one", "two")
	want(b, "one")
	check(one, "no answer") // its earlier packages are kept
	want(b, "one")
	check(one, "no answer")
	check(one, "", a.ID)
	want(b)
	w.view(func(tx *store.Tx) error {
		m, err := tx.Mirror(one.ID)
		if m.Packages != 1 || m.Reason != "" || m.CheckedAt.IsZero() {
			t.Errorf("mirror %+v", m)
		}
		history, _ := tx.History(corral.ObjectMirror, int64(one.ID), store.Page{})
		if len(history) != 4 { // created, checked, no answer, working again
			t.Errorf("history %+v", history)
		}
		return err
	})
	w.write(func(tx *store.Tx) error { _, err := tx.DeleteMirror(two.ID, ""); return err })
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.DeleteMirror(two.ID, ""); return err })
	want(a, "one")
	w.createMirror("two")
}

func TestMirrorIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.createMirror("one")
	w.write(func(tx *store.Tx) error {
		if err := tx.MeasureMirror(m.ID, true, 1000, time.Second); err != nil {
			return err
		}
		return tx.MeasureMirror(m.ID, false, 10, time.Second)
	})
	w.view(func(tx *store.Tx) error {
		got, err := tx.Mirror(m.ID)
		if h := got.Health; h.Successes != 1 || h.Failures != 1 || h.BytesPerS != 1000 || h.MeasuredAt.IsZero() {
			t.Errorf("health %+v", h)
		}
		return err
	})
}
