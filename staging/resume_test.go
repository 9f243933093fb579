package staging

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// A flaky server interrupts its first answers; version returns the content for the nth request.
type flaky struct {
	breaks   int // how many answers are interrupted
	version  func(n int, content []byte) (body []byte, etag string)
	ignores  bool // ignores ranges silently
	shifted  bool // its ranges begin one byte late
	honest   bool // observes If-Range; otherwise it always sends the range
	content  []byte
	mu       sync.Mutex // guards requests
	requests []string   // Range headers
}

func (s *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r.Header.Get("Range"))
	s.mu.Unlock()
	body, etag := s.content, ""
	if s.version != nil {
		body, etag = s.version(n, s.content)
	}
	from := 0
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
	if v := r.Header.Get("If-Range"); s.ignores || s.honest && v != etag {
		from = 0
	}
	w.Header().Set("Accept-Ranges", "bytes")
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)-from))
	if from > 0 {
		at := from
		if s.shifted {
			at++
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", at, len(body)-1, len(body)))
		w.WriteHeader(http.StatusPartialContent)
	}
	if n < s.breaks {
		w.Write(body[from : from+len(body)/4])
		return // less than announced: the connection is cut
	}
	w.Write(body[from:])
}

func changed(content []byte) []byte {
	other := bytes.Clone(content)
	other[len(other)/8] ^= 1
	return other
}

// Whatever a server does between the parts, Fetch delivers the package.
func TestFetchResumes(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	name, err := m.Path(p)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	quarter := len(content) / 4
	tagged := func(_ int, c []byte) ([]byte, string) { return c, `"v1"` }
	replaced := func(n int, c []byte) ([]byte, string) { // after the first part the file is replaced by the right one
		if n == 0 {
			return changed(c), `"old"`
		}
		return c, `"new"`
	}
	silently := func(n int, c []byte) ([]byte, string) {
		if n == 0 {
			return changed(c), ""
		}
		return c, ""
	}
	piece := func(k int) string { return fmt.Sprintf("bytes=%d-", k*quarter) }
	for _, c := range []struct {
		name    string
		server  *flaky
		want    []string // the Range of each request
		resumed int
		fails   string
	}{
		{"by entity tag", &flaky{breaks: 2, version: tagged, honest: true}, []string{"", piece(1), piece(2)}, 2, ""},
		{"by digest alone", &flaky{breaks: 1}, []string{"", piece(1)}, 1, ""},
		{"replaced in between, and said so", &flaky{breaks: 1, version: replaced, honest: true}, []string{"", piece(1)}, 1, ""},
		{"replaced in between, unsaid", &flaky{breaks: 1, version: silently}, []string{"", piece(1), ""}, 1, ""},
		{"ranges ignored", &flaky{breaks: 1, ignores: true}, []string{"", piece(1)}, 1, ""},
		{"another tag in the range", &flaky{breaks: 1, version: replaced}, []string{"", piece(1)}, 1, "the file changed while it was read"},
		{"wrong range", &flaky{breaks: 1, shifted: true}, []string{"", piece(1), ""}, 1, ""},
		{"never ends", &flaky{breaks: 99}, []string{"", piece(1), piece(2), piece(3)}, 3, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.server.content = content
			srv := httptest.NewServer(c.server)
			defer srv.Close()
			dir := t.TempDir()
			dst := filepath.Join(dir, "dst")
			tries, err := newFetcher(t).Fetch(t.Context(), Source{p, []string{srv.URL + "/p"}}, dst)
			if got := strings.Join(c.server.requests, ","); got != strings.Join(c.want, ",") {
				t.Errorf("ranges %s, want %s", got, strings.Join(c.want, ","))
			}
			if tries[0].Resumed != c.resumed || !tries[0].Reached {
				t.Errorf("try %+v, want %d resumes", tries[0], c.resumed)
			}
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("Fetch = %v, want %q", err, c.fails)
				}
				assertEntries(t, dir)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := packages.Verify(t.Context(), dst, p); err != nil {
				t.Error(err)
			}
		})
	}
}

// A mirror that repeatedly sends small amounts is given up, and the next one is tried.
func TestFetchLeavesASlowMirror(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	drip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				w.Write([]byte{'x'})
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer drip.Close()
	f := newFetcher(t)
	f.Pace = Pace{BytesPerS: 1000, Window: 5 * time.Second} // enough for the good mirror
	tries, err := f.Fetch(t.Context(), Source{p, []string{drip.URL, fileURL(t, m, p)}}, filepath.Join(t.TempDir(), "dst"))
	if err != nil || len(tries) != 2 || !strings.Contains(tries[0].Reason, "too slow") || !strings.Contains(tries[0].Reason, "the floor is 5000") || !tries[0].Transient {
		t.Errorf("Fetch = %v, %v, want a slow mirror and a good one", tries, err)
	}
}

func TestTrySaysWhetherAnybodyAnswered(t *testing.T) {
	t.Parallel()
	base, _, p := serveBadly(t)
	tries, _ := newFetcher(t).Fetch(t.Context(), Source{p, []string{nobody, base + "/refuses/x", "file:///none"}}, filepath.Join(t.TempDir(), "dst"))
	for i, want := range []bool{false, true, true} {
		if tries[i].Reached != want {
			t.Errorf("%s: Reached = %v, want %v", tries[i], tries[i].Reached, want)
		}
	}
}

func TestIndexOfAMirror(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	signer, err := packages.LoadSigner(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Vouch(signer.Sign(p)); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.StripPrefix("/m", m))
	defer srv.Close()
	f := newFetcher(t)
	for _, base := range []string{srv.URL + "/m", srv.URL + "/m/", "file://" + m.Dir} {
		got, err := f.Index(t.Context(), base)
		if err != nil || len(got) != 1 || got[0] != signer.Sign(p) {
			t.Errorf("Index(%s) = %v, %v, want the signed package", base, got, err)
		}
		at, err := URLBelow(base, p)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := f.Signature(t.Context(), at); err != nil || s != got[0] {
			t.Errorf("Signature(%s) = %v, %v", at, s, err)
		}
	}
	if _, err := f.Index(t.Context(), srv.URL+"/none"); corral.KindOf(err) != corral.Failed && err != nil {
		t.Errorf("Index = %v", err)
	}
	if err := m.Remove(p); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Index(t.Context(), srv.URL+"/m"); err != nil || len(got) != 0 {
		t.Errorf("Index of an empty mirror = %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(m.Dir, IndexName), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Index(t.Context(), srv.URL+"/m"); corral.KindOf(err) != corral.Failed {
		t.Errorf("Index of nonsense = %v, want Failed", err)
	}
}
