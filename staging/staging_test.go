package staging

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

var header = packages.Header{What: "corral-pilot", Version: "0.1.0",
	Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}}

var files = fstest.MapFS{
	"bin/pilot": {Data: bytes.Repeat([]byte("pilot "), 50_000), Mode: 0o755},
	"README":    {Data: []byte("read me"), Mode: 0o644},
}

func newMirror(t *testing.T) (Mirror, packages.Package) {
	t.Helper()
	m := Mirror{Dir: filepath.Join(t.TempDir(), "mirror")}
	p, err := m.Build(header, files)
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

// nobody names an address without a server: its port is never assigned to another test.
const nobody = "http://127.0.0.1:1"

// newFetcher returns a Fetcher that gives up quickly.
func newFetcher(t *testing.T) *Fetcher {
	t.Helper()
	f := NewFetcher(slog.New(slog.NewTextHandler(t.Output(), nil)))
	f.http.RetryWaitMin, f.http.RetryWaitMax = time.Millisecond, time.Millisecond
	t.Cleanup(f.http.HTTPClient.CloseIdleConnections)
	return f
}

func fileURL(t *testing.T, m Mirror, p packages.Package) string {
	t.Helper()
	u, err := m.URL(p)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMirrorAdds(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	other := Mirror{Dir: filepath.Join(t.TempDir(), "other")}
	for range 2 { // the second time changes nothing
		if q, err := other.Add(t.Context(), filepath.Join(m.Dir, name)); err != nil || q != p {
			t.Fatalf("Add = %v, %v, want %v", q, err, p)
		}
	}
	if !other.Has(p) {
		t.Errorf("%s is not in the mirror", p.Name)
	}
	assertEntries(t, other.Dir, name)

	if _, err := other.Add(t.Context(), "staging_test.go"); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Add(not a package) = %v, want Invalid", err)
	}
	assertEntries(t, other.Dir, name)
	if err := errors.Join(other.Remove(p), other.Remove(p)); err != nil {
		t.Error(err)
	}
	assertEntries(t, other.Dir, IndexName)
}

func TestMirrorServesPackagesOnly(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	if err := os.WriteFile(filepath.Join(m.Dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, byteRange string
		status                  int
		length                  int64 // of the body, if the status is 200 or 206
	}{
		{"GET", "/" + name, "", 200, p.SizeBytes},
		{"GET", "/" + name, "bytes=10-19", 206, 10},
		{"HEAD", "/" + name, "", 200, 0},
		{"GET", "/secret", "", 404, 0},
		{"GET", "/", "", 404, 0},
		{"GET", "/" + strings.Repeat("0", 64) + ".tar.gz", "", 404, 0},
		{"PUT", "/" + name, "", 405, 0},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.byteRange != "" {
			r.Header.Set("Range", c.byteRange)
		}
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s = %d, want %d", c.method, c.path, w.Code, c.status)
		}
		if n := int64(w.Body.Len()); w.Code < 300 && n != c.length {
			t.Errorf("%s %s: %d bytes, want %d", c.method, c.path, n, c.length)
		}
	}
}

// A badMirror serves one package with a fault.
type badMirror struct {
	good  Mirror
	asked atomic.Int32
}

func (b *badMirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.asked.Add(1)
	fault, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	content, err := os.ReadFile(filepath.Join(b.good.Dir, rest))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	switch fault {
	case "refuses":
		http.Error(w, "no", http.StatusForbidden)
	case "overloaded":
		http.Error(w, "later", http.StatusServiceUnavailable)
	case "truncates":
		w.Header().Set("Content-Length", "100000")
		w.Write(content[:100])
	case "short":
		w.Write(content[:100])
	case "long":
		w.Write(append(content, 0))
	case "wrong-byte":
		content[len(content)/2] ^= 1
		w.Write(content)
	case "stalls":
		w.Write(content[:100])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		w.Write(content)
	}
}

func serveBadly(t *testing.T) (url string, b *badMirror, p packages.Package) {
	t.Helper()
	m, p := newMirror(t)
	b = &badMirror{good: m}
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	return srv.URL, b, p
}

func TestFetchReasonsPerFault(t *testing.T) {
	t.Parallel()
	base, _, p := serveBadly(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, want string
		transient       bool
	}{
		{"refuses", base + "/refuses/" + name, "server replied 403 Forbidden", false},
		{"overloaded", base + "/overloaded/" + name, "server replied 503 Service Unavailable", true},
		{"not there", base + "/works/none", "server replied 404 Not Found", false},
		{"truncates", base + "/truncates/" + name, "unexpected EOF", true},
		{"short", base + "/short/" + name, "truncated: 100 of", false},
		{"long", base + "/long/" + name, "more than", false},
		{"wrong byte", base + "/wrong-byte/" + name, "digest is sha256:", false},
		{"stalls", base + "/stalls/" + name, " bytes in 2s", true},
		{"no server", nobody + "/" + name, "connection refused", true},
		{"no file", "file:///none/" + name, "no such file", false},
		{"other host", "file://elsewhere/" + name, `cannot name the host "elsewhere"`, false},
		{"scheme", "gopher://x/" + name, `does not support the scheme "gopher"`, false},
		{"not a URL", "http://user:secret@[", "not a URL", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFetcher(t)
			if c.name == "stalls" {
				f.Pace.Window = 2 * time.Second
			}
			dir := t.TempDir()
			tries, err := f.Fetch(t.Context(), Source{p, []string{c.url}}, filepath.Join(dir, "dst"))
			kind := map[bool]corral.Kind{true: corral.Unavailable, false: corral.Failed}[c.transient]
			if corral.KindOf(err) != kind || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p.Name) {
				t.Errorf("Fetch = %v, want %s naming %s with %q", err, kind, p.Name, c.want)
			}
			if len(tries) != 1 || tries[0].Transient != c.transient || !strings.Contains(tries[0].Reason, c.want) {
				t.Errorf("tries = %+v, want one with %q, transient %v", tries, c.want, c.transient)
			}
			assertEntries(t, dir)
		})
	}
}

func TestFetchTriesTheNextMirror(t *testing.T) {
	t.Parallel()
	base, _, p := serveBadly(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dst := filepath.Join(dir, "dst")
	tries, err := newFetcher(t).Fetch(t.Context(), Source{p, []string{
		base + "/refuses/" + name + "?token=secret",
		base + "/truncates/" + name,
		base + "/wrong-byte/" + name,
		base + "/works/" + name,
		base + "/never-asked/" + name,
	}}, dst)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"refuses", "truncates", "wrong-byte", "works"}
	for i, try := range tries {
		if !strings.Contains(try.URL, want[i]) || (try.Reason == "") != (i == 3) || strings.Contains(try.String(), "secret") {
			t.Errorf("try %d = %s", i, try)
		}
	}
	if len(tries) != len(want) {
		t.Errorf("%d tries, want %d", len(tries), len(want))
	}
	if err := packages.Verify(t.Context(), dst, p); err != nil {
		t.Error(err)
	}
	assertEntries(t, dir, "dst")
}

func TestFetchRetriesAnOverloadedMirror(t *testing.T) {
	t.Parallel()
	base, b, p := serveBadly(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newFetcher(t).Fetch(t.Context(), Source{p, []string{base + "/overloaded/" + name}}, filepath.Join(t.TempDir(), "dst")); err == nil {
		t.Error("Fetch = nil, want an error")
	}
	if n := b.asked.Load(); n != 3 {
		t.Errorf("the mirror was asked %d times, want 3", n)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	base, b, p := serveBadly(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once it receives a request
		for ctx.Err() == nil && b.asked.Load() == 0 {
			<-time.After(10 * time.Millisecond)
		}
		cancel()
	}()
	dir := t.TempDir()
	tries, err := newFetcher(t).Fetch(ctx, Source{p, []string{base + "/stalls/" + name, base + "/works/" + name}}, filepath.Join(dir, "dst"))
	if !errors.Is(err, context.Canceled) || len(tries) != 1 {
		t.Errorf("Fetch = %v after %d tries, want the cancellation after one", err, len(tries))
	}
	assertEntries(t, dir)
}

func TestInstallOnceForMany(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	b := &badMirror{good: m}
	srv := httptest.NewServer(b)
	defer srv.Close()
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	f, src := newFetcher(t), Source{p, []string{srv.URL + "/works/" + name}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			dir, _, err := f.Install(t.Context(), root, src)
			if _, errCheck := packages.Check(dir); err != nil || errCheck != nil {
				t.Errorf("Install = %v, %v", err, errCheck)
			}
		})
	}
	all.Wait()
	if n := b.asked.Load(); n != 1 {
		t.Errorf("the mirror was asked %d times, want once", n)
	}
	digits := strings.TrimSuffix(name, ".tar.gz")
	assertEntries(t, filepath.Join(root, "packages"), digits, digits+".use")
	if info, err := os.Stat(filepath.Join(root, "packages", digits, "bin/pilot")); err != nil || info.Mode() != 0o755 {
		t.Errorf("bin/pilot: %v, %v", info, err)
	}
}

func TestInstallRepairsPurgedPackage(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	f, src, root := newFetcher(t), Source{p, []string{fileURL(t, m, p)}}, t.TempDir()
	dir, tries, err := f.Install(t.Context(), root, src)
	if err != nil || len(tries) != 1 {
		t.Fatalf("Install = %v, %v", tries, err)
	}
	if err := os.Remove(filepath.Join(dir, "README")); err != nil {
		t.Fatal(err)
	}
	if _, tries, err := f.Install(t.Context(), root, src); err != nil || len(tries) != 1 {
		t.Fatalf("Install over damage = %v, %v, want one try", tries, err)
	}
	if _, err := packages.Check(dir); err != nil {
		t.Error(err)
	}
	if _, tries, err := f.Install(t.Context(), root, src); err != nil || len(tries) != 0 {
		t.Errorf("Install again = %v, %v, want no transfer", tries, err)
	}
}

func TestInstallLeavesNothingOnFailure(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := corrupt(filepath.Join(m.Dir, name)); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	_, tries, err := newFetcher(t).Install(t.Context(), root, Source{p, []string{fileURL(t, m, p)}})
	if corral.KindOf(err) != corral.Failed || len(tries) != 1 {
		t.Errorf("Install = %v, %v, want Failed after one try", tries, err)
	}
	assertEntries(t, filepath.Join(root, "packages"))

	blocked := filepath.Join(root, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newFetcher(t).Install(t.Context(), blocked, Source{Package: p}); err == nil {
		t.Error("Install below a file = nil, want an error")
	}
	if _, _, err := newFetcher(t).Install(t.Context(), root, Source{Package: packages.Package{Digest: "sha256:../../x"}}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Install of a bad digest = %v, want Invalid", err)
	}
}

func TestInstallWaitForLockEndsWithContext(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	root := t.TempDir()
	dir, err := Dir(root, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), dir+".lock")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	src := Source{p, []string{fileURL(t, m, p)}}
	if _, _, err := newFetcher(t).Install(ctx, root, src); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Install under a held lock = %v, want the deadline", err)
	}
	unlock()
	if _, _, err := newFetcher(t).Install(t.Context(), root, src); err != nil {
		t.Errorf("Install after the lock is free = %v", err)
	}
}

func corrupt(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 1000); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = f.WriteAt([]byte{b[0] ^ 1}, 1000)
	return err
}

// assertEntries checks the content of a directory.
func assertEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s holds (-want +got):\n%s", dir, diff)
	}
}
