package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
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

// A newer build replaces the previous one unless a site uses it.
func TestRegisterSupersedes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.catalog
	stock := c.depot.stock[0]
	old := described(stock)
	old.Owner, old.Digest = store.Actor, "sha256:"+strings.Repeat("0", 64)
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
		if err := c.Register(t.Context()); err != nil {
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

// The pilot of an imported package is extracted from its archive.
func TestBinaryOfAnImportedPackage(t *testing.T) {
	t.Parallel()
	depot := newWorld(t).depot
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
