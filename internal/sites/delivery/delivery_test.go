package delivery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// blind is a real head node on this machine that cannot see corrald's mirror, and that may have no space.
type blind struct {
	gridsite.Head
	full bool
}

func (blind) Sees(context.Context, string) (bool, error) { return false, nil }

func (b blind) Push(ctx context.Context, name, unless string, open func() (io.ReadCloser, error)) (string, error) {
	if b.full {
		return "", &gridsite.Refused{Text: "no room"}
	}
	return b.Head.Push(ctx, name, unless, open)
}

// delivery returns a delivery to a new site on this machine with a chosen package.
func (w *world) delivery(s Supply) (*Delivery, gridsite.Head, corral.Site) {
	w.t.Helper()
	if err := w.catalog.Register(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var site corral.Site
	w.write(func(tx *store.Tx) (err error) {
		site, err = tx.CreateSite(corral.Site{Name: "here", Owner: "local", Contact: "local:", Batch: "fork",
			Root: filepath.Join(w.t.TempDir(), "site")})
		return err
	})
	d := NewDelivery(w.catalog, s, site.ID, func(ctx context.Context, fn func(*store.Tx) error) error {
		return storetest.All(w.db).Write(ctx, store.Actor, fn)
	})
	head := headnode.New(local.Conn{}, site.Root)
	site, err := d.Choose(w.t.Context(), head, site)
	if err != nil {
		w.t.Fatal(err)
	}
	return d, head, site
}

// history returns the site's history entries about an event.
func (w *world) history(site corral.SiteID, event string) (lines []string) {
	w.t.Helper()
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectSite, int64(site), store.Page{})
		for _, e := range entries {
			if e.Event == event {
				lines = append(lines, e.Reason)
			}
		}
		return err
	})
	return lines
}

// The first program at a site is its package's pilot, and it is copied only to a root that may be ours.
func TestPilotIsBooted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, head, site := w.delivery(Supply{})
	mine := gridsite.Claim{Owner: "mine me@here"}
	for range 2 {
		if err := d.Boot(t.Context(), time.Now(), head, site, mine); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(site.Root, BootProgram(site))); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the pilot is %v (%v), want a program", info, err)
	}
	var why Hopeless
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Boot(t.Context(), time.Now(), headnode.New(local.Conn{}, file), site, mine); !errors.As(err, &why) {
		t.Errorf("below a file: %v, want it hopeless", err)
	}
	if err := os.Remove(filepath.Join(site.Root, BootProgram(site))); err != nil {
		t.Fatal(err)
	}
	unknown := site
	unknown.PackageDigest = "sha256:" + strings.Repeat("5", 64)
	if err := d.Boot(t.Context(), time.Now(), head, unknown, mine); corral.KindOf(err) != corral.NotFound {
		t.Errorf("of a package that nobody has: %v", err)
	}
}

// A site that sees the mirror gets its path; another site fetches the package or receives it by push, and the history
// says why.
func TestPackageTakesItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, head, site := w.delivery(Supply{CacheBytes: 1, ServedAt: "http://corrald:8080/mirror"})
	others := []string{"sha256:b", site.PackageDigest, "", "sha256:a", "sha256:b"}
	ordered := func(head gridsite.Head) *jobfiles.Setup {
		t.Helper()
		o, err := d.Package(t.Context(), time.Now(), head, site.PackageDigest, slices.Clone(others))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := ordered(head); len(o.Sources) != 1 || !strings.HasPrefix(o.Sources[0].URL, "file:///") ||
		!slices.Equal(o.Keep, []string{"sha256:a", "sha256:b"}) || o.CacheBytes != 1 || len(o.Trusted) != 1 {
		t.Errorf("order %+v, want the file, and to keep what others need", o)
	}
	if o := ordered(blind{Head: head}); len(o.Sources) != 1 || !strings.HasPrefix(o.Sources[0].URL, "http://corrald:8080/mirror/") {
		t.Errorf("order %+v, want corrald's mirror", o)
	}
	d.Learn(nil) // for a job that tried nothing, because it had the package
	d.Learn([]jobfiles.Try{{}})
	if o := ordered(blind{Head: head}); len(o.Sources) != 1 || !strings.Contains(o.Sources[0].URL, ".incoming") {
		t.Errorf("order %+v, want what was pushed", o)
	}
	d.Learn([]jobfiles.Try{{}, {Reached: true}})
	if o := ordered(blind{Head: head}); !strings.HasPrefix(o.Sources[0].URL, "http://") {
		t.Errorf("order %+v, want corrald's mirror again", o)
	}
	ways := w.history(site.ID, "supply")
	for i, want := range []string{"local: the site sees", "mirrors: the site cannot see", "push: no mirror answered", "mirrors"} {
		if len(ways) != 4 || !strings.Contains(ways[i], "is delivered by "+want) {
			t.Errorf("history %q, want %q in line %d", ways, want, i)
		}
	}
	var why Hopeless
	d.supply.Way = WayPush
	if _, err := d.Package(t.Context(), time.Now(), blind{head, true}, site.PackageDigest, nil); !errors.As(err, &why) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("to a full disk: %v, want it hopeless", err)
	}
	if _, err := d.Package(t.Context(), time.Now(), head, "sha256:"+strings.Repeat("5", 64), nil); !errors.As(err, &why) {
		t.Errorf("of a package that nobody has: %v, want it hopeless", err)
	}
}

// A lost archive is fetched from a mirror; a mirror that fails to provide it is recorded, and its health figures
// suffer.
func TestLostArchiveIsFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, head, site := w.delivery(Supply{})
	good := http.FileServer(http.Dir(t.TempDir()))
	dir := w.depot.mirror.Dir
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{"bad": good, "good": http.FileServer(http.Dir(copied))} {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		w.write(func(tx *store.Tx) error {
			m, err := tx.CreateMirror(corral.Mirror{Name: name, Owner: "local", URL: s.URL})
			if err == nil {
				_, err = tx.CheckMirror(m.ID, []corral.PackageID{1}, "")
			}
			return err
		})
	}
	lose := func() {
		if err := w.catalog.Drop(described(w.depot.stock[0])); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	o, err := d.Package(t.Context(), time.Now(), head, site.PackageDigest, nil)
	if err != nil || !strings.HasPrefix(o.Sources[0].URL, "file:///") {
		t.Errorf("order %+v, %v, want the file that was fetched", o, err)
	}
	if tries := w.history(site.ID, "fetch"); len(tries) == 0 || !strings.Contains(tries[len(tries)-1], "which worked") {
		t.Errorf("history %q, want the mirror that worked", tries)
	}
	w.view(func(tx *store.Tx) error {
		m, err := tx.MirrorNamed("good")
		if m.Health.Successes == 0 {
			t.Errorf("its health is %+v", m.Health)
		}
		return err
	})
	lose()
	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	d.supply.Way = WayPush
	var why Hopeless
	if _, err := d.Package(t.Context(), time.Now(), head, site.PackageDigest, nil); !errors.As(err, &why) || !strings.Contains(err.Error(), "cannot be pushed") {
		t.Errorf("without any archive: %v, want it hopeless", err)
	}
	w.write(func(tx *store.Tx) error {
		return d.Reported(tx, []jobfiles.Try{{Mirror: 1, Line: "gave nothing"}, {Mirror: 99}})
	})
	if tries := w.history(site.ID, "fetch"); !strings.Contains(strings.Join(tries, "\n"), "the setup job asked source 1 of 2, which failed: gave nothing") {
		t.Errorf("history %q, want what the setup job tried", tries)
	}
}

// Without a package for its platform a site is unusable.
func TestNoPackageForThePlatform(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, head, site := w.delivery(Supply{})
	w.depot.stock = nil
	w.write(func(tx *store.Tx) error { _, err := tx.DeletePackage(1, "test"); return err })
	var why Hopeless
	if _, err := d.Choose(t.Context(), head, site); !errors.As(err, &why) {
		t.Errorf("Choose = %v, want it hopeless", err)
	}
}
