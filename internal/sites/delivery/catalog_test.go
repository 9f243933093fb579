package delivery

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
	"github.com/corral-pilot/corral/staging"
)

// elsewhere serves another person's mirror over HTTP, with one package signed by that person.
func elsewhere(t *testing.T, by packages.Signer) (url string, offered packages.Signed) {
	t.Helper()
	m := staging.Mirror{Dir: t.TempDir()}
	h := packages.Header{What: "tool", Version: "1.0", Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}}
	p, err := m.Build(h, fstest.MapFS{"bin/tool": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}})
	offered = by.Sign(p)
	if err == nil {
		err = m.Vouch(offered)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(m.Dir)))
	t.Cleanup(s.Close)
	return s.URL, offered
}

func newSigner(t *testing.T) packages.Signer {
	t.Helper()
	s, err := packages.LoadSigner(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A package signed by a trusted key is imported, verified byte for byte, and dropped; other packages are refused.
func TestPackageIsImported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	friend := newSigner(t)
	at, offered := elsewhere(t, friend)
	source, err := staging.URLBelow(at, offered.Package)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.catalog.Import(t.Context(), source, nil, false); corral.KindOf(err) == "" {
		t.Errorf("without any signature beside it: %v", err)
	}
	signature, err := offered.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.catalog.Import(t.Context(), source, signature, false); corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), offered.Name) {
		t.Errorf("of a stranger: %v, want Forbidden", err)
	}
	if good, err := w.catalog.Check(t.Context(), corral.Mirror{URL: at}); err != nil || len(good) != 0 {
		t.Errorf("a stranger's mirror has %+v (%v), want nothing of use", good, err)
	}
	w.depot.trusted = append(w.depot.trusted, friend.Public())
	p, err := w.catalog.Import(t.Context(), source, signature, false)
	if err != nil || p.Digest != offered.Digest || p.Key != string(friend.Public()) {
		t.Fatalf("Import = %+v, %v", p, err)
	}
	if good, err := w.catalog.Check(t.Context(), corral.Mirror{URL: at}); err != nil || len(good) != 1 || good[0].Digest != p.Digest {
		t.Errorf("a friend's mirror has %+v (%v), want %+v", good, err, p)
	}
	if _, err := w.catalog.Check(t.Context(), corral.Mirror{URL: at + "/none"}); err == nil {
		t.Error("a mirror without an index is no error")
	}
	w.write(func(tx *store.Tx) error { p.Owner = "local"; _, err := tx.CreatePackage(p); return err })
	if err := w.catalog.Verify(t.Context(), p); err != nil {
		t.Errorf("Verify = %v", err)
	}
	archive, err := w.depot.Mirror().Path(offered.Package)
	if err == nil {
		err = os.WriteFile(archive, []byte("another"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.catalog.Verify(t.Context(), p); err == nil {
		t.Error("a damaged archive passes")
	}
	if err := w.catalog.Drop(p); err != nil || w.depot.mirror.Has(offered.Package) {
		t.Errorf("Drop = %v, and the archive is there: %t", err, w.depot.mirror.Has(offered.Package))
	}
	forged := p
	forged.Signature = "AAAA"
	if err := w.catalog.Verify(t.Context(), forged); corral.KindOf(err) != corral.Forbidden {
		t.Errorf("a forged signature: %v, want Forbidden", err)
	}
}

// For an invalid source the error describes valid ones.
func TestBadSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		source string
		sign   bool
		place  string
	}{
		{"worker.tar.gz", false, "source"}, {"sftp://ann:secret@host/x", false, "source"}, {"gopher://host/x", false, "source"},
		{"http://127.0.0.1:1/x", true, "sign"}, {"/none", false, "source"}, {"/none", true, "source"}, {text, true, "source"}, {text, false, "signature"},
	} {
		_, err := w.catalog.Import(t.Context(), c.source, nil, c.sign)
		if err == nil || !strings.HasPrefix(err.Error(), c.place+": ") {
			t.Errorf("%s, sign %t: %v, want it at %s", c.source, c.sign, err, c.place)
		}
	}
}

// A pool's workers need a package that runs at their site and is not newer than the pool.
func TestWorkerPackageForAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site := corral.Site{Name: "here", Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}}
	pool := corral.Cluster{Name: "mine", Kind: corral.Condor, Version: "23.9.6"}
	check := func() error { return w.catalog.CheckGlidein(t.Context(), site, pool) }
	if err := check(); corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), "corral package build") {
		t.Errorf("CheckGlidein = %v", err)
	}
	w.workerPackage("25.14.1", "x86_64")
	w.workerPackage("23.9.6", "aarch64")
	err := check()
	for _, word := range []string{"25.14.1", "newer than the pool's HTCondor 23.9.6", "is for linux/aarch64", "corral package build"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("CheckGlidein = %v, want something about %q", err, word)
		}
	}
	w.workerPackage("23.4.0", "x86_64")
	p := w.workerPackage("23.9.6", "x86_64")
	if err := check(); err != nil {
		t.Errorf("CheckGlidein = %v with a package that fits", err)
	}
	w.view(func(tx *store.Tx) error {
		n, err := NeedOf(tx, site, pool)
		if n.Digest != p.Digest {
			t.Errorf("chosen is %s, want %s", n.Package, p.Name)
		}
		return err
	})
	pool.Version = ""
	if err := check(); err != nil {
		t.Errorf("of a pool that has not started: %v", err)
	}
	if err := w.catalog.CheckGlidein(t.Context(), corral.Site{}, corral.Cluster{Kind: corral.Embedded}); err != nil {
		t.Errorf("of an embedded cluster: %v", err)
	}
	if p.What != htcondor.Worker {
		t.Errorf("it is a package of %s", p.What)
	}
}

// A pilot that was packed before is not packed again, and a missing archive is rebuilt.
func TestPilotIsPackedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.depot.stock[0]
	dir := filepath.Dir(w.depot.mirror.Dir)
	for _, remove := range []bool{false, true} {
		d := OpenDepot(dir, w.depot.signer)
		if err := d.Sweep(); err != nil {
			t.Fatal(err)
		}
		if remove {
			if err := w.catalog.Drop(described(first)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.AddPilot([]byte("#!/bin/sh\n"), "x86_64"); err != nil {
			t.Fatal(err)
		}
		if d.stock[0].Digest != first.Digest || !d.mirror.Has(first.Package) {
			t.Errorf("packed %s, want %s", d.stock[0].Digest, first.Digest)
		}
	}
}
