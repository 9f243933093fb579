package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// A shelf is a directory with an archive, worker.tar.gz, and with a mirror that has another package, signed by a key
// that corrald trusts; and corrald's depot.
type shelf struct {
	dir     string
	depot   *delivery.Depot
	friend  packages.Signer
	mirror  staging.Mirror
	offered packages.Package
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s := &shelf{dir: t.TempDir()}
	own := must(packages.LoadSigner(filepath.Join(s.dir, "own.key")))(t)
	s.friend = must(packages.LoadSigner(filepath.Join(s.dir, "friend.key")))(t)
	s.depot = delivery.OpenDepot(filepath.Join(s.dir, "cache"), own, s.friend.Public())
	if err := os.WriteFile(filepath.Join(s.dir, "worker.tar.gz"), archive(t, "1.0"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mirror = staging.Mirror{Dir: filepath.Join(s.dir, "mirror")}
	s.offered = must(s.mirror.Build(header("2.0"), worker))(t)
	if err := s.mirror.Vouch(s.friend.Sign(s.offered)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shelf) catalog(db *store.DB) *delivery.Catalog {
	return delivery.NewCatalog(slog.New(slog.DiscardHandler), db, s.depot, nil)
}

var worker = fstest.MapFS{"bin/worker": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}}

func header(version string) packages.Header {
	return packages.Header{What: "worker", Version: version, Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}}
}

func archive(t testing.TB, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := packages.Build(&b, header(version), worker); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImportNeedsATrustedSignature(t *testing.T) {
	t.Parallel()
	f := start(t)
	file := filepath.Join(f.shelf.dir, "worker.tar.gz")
	p := must(packages.Inspect(t.Context(), file))(t)
	stranger := must(packages.LoadSigner(filepath.Join(f.shelf.dir, "stranger.key")))(t)
	encoded := func(s packages.Signed) []byte { return must(s.Encode())(t) }
	other := f.shelf.friend.Sign(p)
	other.Digest = f.shelf.offered.Digest
	for _, c := range []struct {
		name string
		in   api.NewPackage
		kind corral.Kind
		says string
	}{
		{"no signature anywhere", api.NewPackage{Source: file}, corral.Failed, "none beside the archive"},
		{"a stranger's", api.NewPackage{Source: file, Signature: encoded(stranger.Sign(p))}, corral.Forbidden, "package " + p.Name + ": it is signed with"},
		{"of another archive", api.NewPackage{Source: file, Signature: encoded(other)}, corral.Forbidden, "package " + p.Name},
		{"of what the archive is not", api.NewPackage{Source: file, Signature: encoded(f.shelf.friend.Sign(f.shelf.offered))}, corral.Failed, f.shelf.offered.Name},
		{"nonsense", api.NewPackage{Source: file, Signature: []byte(`{}`)}, corral.Invalid, "signature"},
		{"both", api.NewPackage{Source: file, Sign: true, Signature: []byte(`{}`)}, corral.Invalid, "sign"},
		{"nothing", api.NewPackage{}, corral.Invalid, "source"},
		{"a password", api.NewPackage{Source: "sftp://ann:secret@127.0.0.1:1/x.tar.gz"}, corral.Invalid, "source: an sftp URL takes no password"},
		{"relative", api.NewPackage{Source: "worker.tar.gz"}, corral.Invalid, "source"},
		{"no archive", api.NewPackage{Source: filepath.Join(f.shelf.dir, "own.key"), Sign: true}, corral.Invalid, "bad package"},
		{"not there", api.NewPackage{Source: "/none", Sign: true}, corral.Invalid, "no such file"},
		{"sign what is elsewhere", api.NewPackage{Source: "http://127.0.0.1:1/x", Sign: true}, corral.Invalid, "only a local archive"},
	} {
		_, err := f.ImportPackage(t.Context(), c.in, "")
		if corral.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s), want %s with %q", c.name, err, corral.KindOf(err), c.kind, c.says)
		}
	}
	if all := must(f.Packages(t.Context(), api.Filter{All: true}))(t); len(all) != 0 {
		t.Errorf("packages %+v, want none", all)
	}
	if left, _ := filepath.Glob(f.shelf.dir + "/cache/mirror/*.tar.gz"); len(left) != 0 {
		t.Errorf("left in the mirror: %v", left)
	}
	got := must(f.ImportPackage(t.Context(), api.NewPackage{Source: file, Signature: encoded(f.shelf.friend.Sign(p))}, "k"))(t)
	again := must(f.ImportPackage(t.Context(), api.NewPackage{Source: file, Signature: encoded(f.shelf.friend.Sign(p))}, "k"))(t)
	if diff := cmp.Diff(got, again); diff != "" || got.Digest != p.Digest || got.Key != string(f.shelf.friend.Public()) {
		t.Errorf("import %+v, repeated: %s", got, diff)
	}
	_, err := f.ImportPackage(t.Context(), api.NewPackage{Source: file, Sign: true}, "")
	wantKind(t, "twice", err, corral.Conflict, "source")
}

func TestVerifyFindsADamagedArchive(t *testing.T) {
	t.Parallel()
	f := start(t)
	p := must(f.ImportPackage(t.Context(), api.NewPackage{Source: filepath.Join(f.shelf.dir, "worker.tar.gz"), Sign: true}, ""))(t)
	must(f.VerifyPackage(t.Context(), p.Name))(t)
	stored, _ := filepath.Glob(f.shelf.dir + "/cache/mirror/*.tar.gz")
	b := must(os.ReadFile(stored[0]))(t)
	b[len(b)/2] ^= 1
	if err := os.WriteFile(stored[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.VerifyPackage(t.Context(), p.Digest)
	if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "package "+p.Name+": corrupt") {
		t.Errorf("verify = %v, want Failed naming the package", err)
	}
	must(f.RemovePackage(t.Context(), "1"))(t)
	_, err = f.VerifyPackage(t.Context(), "1")
	wantKind(t, "removed", err, corral.Conflict, "package")
	if left, _ := filepath.Glob(f.shelf.dir + "/cache/mirror/*.tar.gz*"); len(left) != 0 {
		t.Errorf("left in the mirror: %v", left)
	}
}

// A mirror's index adds packages signed by a trusted key to the catalog, and no others; the archive is fetched when
// it is needed.
func TestMirrorFillsTheCatalog(t *testing.T) {
	t.Parallel()
	f := start(t)
	stranger := must(packages.LoadSigner(filepath.Join(f.shelf.dir, "stranger.key")))(t)
	unknown := must(f.shelf.mirror.Build(header("6.6"), worker))(t)
	if err := f.shelf.mirror.Vouch(stranger.Sign(unknown)); err != nil {
		t.Fatal(err)
	}
	m := must(f.AddMirror(t.Context(), api.NewMirror{Name: "campus", URL: "file://" + f.shelf.mirror.Dir}, ""))(t)
	if m.Packages != 1 || m.Reason != "" || m.CheckedAt.IsZero() {
		t.Errorf("mirror %+v, want one package", m)
	}
	all := must(f.Packages(t.Context(), api.Filter{}))(t)
	if len(all) != 1 || all[0].Digest != f.shelf.offered.Digest || !cmp.Equal(all[0].Mirrors, []string{"campus"}) {
		t.Fatalf("packages %+v, want the offered one", all)
	}
	must(f.VerifyPackage(t.Context(), all[0].Name))(t) // fetches it

	if err := os.Remove(filepath.Join(f.shelf.mirror.Dir, staging.IndexName)); err != nil {
		t.Fatal(err)
	}
	if m = must(f.CheckMirror(t.Context(), "campus"))(t); !strings.Contains(m.Reason, "index.json") || m.Packages != 1 {
		t.Errorf("mirror without index %+v, want a reason", m)
	}
	for range 2 { // a repetition is harmless
		if m = must(f.RemoveMirror(t.Context(), "1"))(t); m.State != corral.MirrorDeleted || m.Packages != 0 {
			t.Errorf("removed mirror %+v", m)
		}
	}
	if all = must(f.Packages(t.Context(), api.Filter{}))(t); len(all) != 1 || len(all[0].Mirrors) != 0 {
		t.Errorf("packages %+v, want one without mirror", all)
	}
	_, err := f.CheckMirror(t.Context(), "1")
	wantKind(t, "removed", err, corral.Conflict, "mirror")
	if list := must(f.Mirrors(t.Context(), api.Filter{All: true}))(t); len(list) != 1 {
		t.Errorf("mirrors %+v", list)
	}
}

func TestBadMirrors(t *testing.T) {
	t.Parallel()
	f := start(t)
	good := api.NewMirror{Name: "a", URL: "file:///none"}
	must(f.AddMirror(t.Context(), good, ""))(t)
	for _, c := range []struct {
		name, url string
		kind      corral.Kind
		place     string
	}{
		{"", "http://h/", corral.Invalid, "name"},
		{"7", "http://h/", corral.Invalid, "name"},
		{"b", "", corral.Invalid, "url"},
		{"b", "http://[", corral.Invalid, "url"},
		{"b", "gopher://h/", corral.Invalid, "url"},
		{"b", "http:///x", corral.Invalid, "url"},
		{"b", "file://h/x", corral.Invalid, "url"},
		{"b", "http://h/?x=1", corral.Invalid, "url"},
		{"b", "ftp://me:secret@h/", corral.Invalid, "url"},
		{"a", "file:///other", corral.Conflict, "name"},
		{"b", "file:///none", corral.Conflict, "name"},
	} {
		_, err := f.AddMirror(t.Context(), api.NewMirror{Name: c.name, URL: c.url}, "")
		wantKind(t, c.name+" "+c.url, err, c.kind, c.place)
	}
	for _, ref := range []string{"none", "99", "99999999999999999999"} {
		_, err := f.Mirror(t.Context(), ref)
		wantKind(t, ref, err, corral.NotFound, "mirror")
		_, err = f.Package(t.Context(), ref)
		wantKind(t, ref, err, corral.NotFound, "package")
	}
}

func TestSignatureInARequestIsTheFile(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := must(f.shelf.friend.Sign(f.shelf.offered).Encode())(t)
	if !json.Valid(s) {
		t.Fatalf("%s is not JSON", s)
	}
	at := must(staging.URLBelow("file://"+f.shelf.mirror.Dir, f.shelf.offered))(t)
	p := must(f.ImportPackage(t.Context(), api.NewPackage{Source: at, Signature: s}, ""))(t)
	if history := must(f.PackageHistory(t.Context(), p.Digest))(t); len(history) != 1 || history[0].Object != "package" {
		t.Errorf("history %+v", history)
	}
}
