package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
)

// serve starts a corrald without `corral up`, so that it has no site of its own.
func (u *user) serve() {
	u.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "corrald"))
	cmd.Env, cmd.Dir = u.env, u.dir
	for _, dir := range []string{"state/corral", "cache", "data", "run"} {
		if err := os.MkdirAll(filepath.Join(u.dir, dir), 0o700); err != nil {
			u.t.Fatal(err)
		}
	}
	log, err := os.Create(u.dir + "/state/corral/corrald.log")
	if err != nil {
		u.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
	})
	u.until("corrald answers", 2*time.Minute, func() bool { return u.corral("package", "list", "-q").stdout != "" })
}

// stage creates a site and waits until it is READY or FAILED.
func (u *user) stage(name string) corral.Site {
	u.t.Helper()
	u.must("site", "create", name, "--contact", "local:", "--batch", "fork", "--root", filepath.Join(u.dir, name))
	var s corral.Site
	u.until("the site is staged", 3*time.Minute, func() bool {
		s = read[corral.Site](u, "site", "show", name)
		return s.State == corral.SiteReady || s.State == corral.SiteFailed
	})
	return s
}

// history returns the reasons of a site's entries with this event.
func (u *user) history(site, event string) (reasons []string) {
	u.t.Helper()
	for _, e := range read[[]corral.Entry](u, "site", "history", site) {
		if e.Event == event {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// mirrors serves copies of corrald's mirror, each below its fault's name, and counts what archives it
// sends.
type mirrors struct {
	dir  string
	sent atomic.Int64
}

func (u *user) serveMirrors() (m *mirrors, base string) {
	m = &mirrors{dir: u.dir + "/cache/corral/mirror"}
	srv := httptest.NewServer(m)
	u.t.Cleanup(srv.Close)
	return m, srv.URL
}

func (m *mirrors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	content, err := os.ReadFile(filepath.Join(m.dir, filepath.Base(name)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if !strings.HasSuffix(name, ".tar.gz") {
		w.Write(content)
		return
	}
	switch fault {
	case "refuses":
		http.Error(w, "no", http.StatusForbidden)
		return
	case "truncates":
		content = content[:len(content)/2]
	case "wrong-byte":
		content[len(content)/2] ^= 1
	case "another":
		content = append(content, "more"...)
	}
	n, _ := w.Write(content)
	m.sent.Add(int64(n))
}

// The first mirror refuses, the second truncates, the third has a wrong byte, the fourth works: the site
// is READY and its history has the four tries with their reasons.
func TestFourMirrors(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_SUPPLY=mirrors")
	u.serve()
	m, base := u.serveMirrors()
	for _, name := range []string{"refuses", "truncates", "wrong-byte", "works"} {
		u.must("mirror", "add", name, base+"/"+name)
	}
	if s := u.stage("here"); s.State != corral.SiteReady {
		t.Fatalf("site is %s: %s", s.State, s.Reason)
	}
	tries := u.history("here", "fetch")
	for i, want := range []string{"server replied 403 Forbidden", "truncated: ", "digest is sha256:", "bytes in "} {
		if i >= len(tries) || !strings.Contains(tries[i], want) {
			t.Errorf("try %d is not in the history with %q: %q", i+1, want, tries)
		}
	}
	if len(tries) != 4 {
		t.Errorf("%d tries, want 4: %q", len(tries), tries)
	}
	if way := u.history("here", "supply"); len(way) != 1 || !strings.Contains(way[0], "is delivered by mirrors") {
		t.Errorf("the way is not in the history: %q", way)
	}
	for _, k := range read[[]corral.Mirror](u, "mirror", "list") {
		if worked := k.Name == "works"; worked != (k.Health.Successes > 0) || worked == (k.Health.Failures > 0) {
			t.Errorf("health of %s: %+v", k.Name, k.Health)
		}
	}
	// What failed is asked last by the next site: one try is enough.
	if s := u.stage("there"); s.State != corral.SiteReady || len(u.history("there", "fetch")) != 1 {
		t.Errorf("site is %s after %q, want READY after one try", s.State, u.history("there", "fetch"))
	}
	before := m.sent.Load()
	u.must("cluster", "create", "default")
	for range 2 { // pilots transfer nothing
		u.must("glidein", "create", "--site", "here", "--walltime", "10m", "--wait", "--timeout", "5m")
	}
	if after := m.sent.Load(); after != before {
		t.Errorf("two pilots transferred %d bytes, want none", after-before)
	}
	u.must("site", "remove", "here", "--wait", "--timeout", "5m")
	u.must("site", "remove", "there", "--wait", "--timeout", "5m")
}

// Nothing works: the site is FAILED with all four reasons, and nothing of the package is on the disk.
func TestNoMirrorWorks(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_SUPPLY=mirrors")
	u.serve()
	_, base := u.serveMirrors()
	for _, name := range []string{"refuses", "truncates", "wrong-byte", "another"} {
		u.must("mirror", "add", name, base+"/"+name)
	}
	s := u.stage("here")
	if s.State != corral.SiteFailed {
		t.Fatalf("site is %s, want FAILED", s.State)
	}
	for _, want := range []string{s.Package, "403 Forbidden", "truncated: ", "digest is sha256:", "more than "} {
		if !strings.Contains(s.Reason, want) {
			t.Errorf("the reason lacks %q: %s", want, s.Reason)
		}
	}
	if tries := u.history("here", "fetch"); len(tries) != 4 {
		t.Errorf("tries %q, want 4", tries)
	}
	for _, f := range files(t, filepath.Join(u.dir, "here")) {
		if strings.HasPrefix(f, "packages/") {
			t.Errorf("left behind: %s", f)
		}
	}
}

// Where the site can fetch nothing the package is pushed.
func TestPush(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_SUPPLY=push")
	u.serve()
	if s := u.stage("here"); s.State != corral.SiteReady {
		t.Fatalf("site is %s: %s", s.State, s.Reason)
	}
	if way := u.history("here", "supply"); len(way) != 1 || !strings.Contains(way[0], "is delivered by push") {
		t.Errorf("the way is not in the history: %q", way)
	}
	if left, _ := filepath.Glob(u.dir + "/here/packages/*.incoming"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	u.must("site", "remove", "here", "--wait", "--timeout", "5m")
}

// freeAddress has a port that nobody is given who leaves the choice to the system.
func freeAddress(t testing.TB) netip.AddrPort {
	t.Helper()
	address, err := condor.FreeAddress(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// A corrald serves its packages to another one, which takes only what it was told to trust.
func TestCorraldIsAMirror(t *testing.T) {
	t.Parallel()
	address := freeAddress(t).String()
	giver := newUser(t, "CORRALD_MIRROR_LISTEN="+address)
	giver.serve()
	offered := read[[]corral.Package](giver, "package", "list")[0]
	archive := fmt.Sprintf("http://%s/%s.tar.gz", address, strings.TrimPrefix(offered.Digest, "sha256:"))

	stranger := newUser(t)
	stranger.serve()
	a := stranger.corral("package", "import", archive)
	if a.code != 5 || !strings.Contains(a.stderr, "package "+offered.Name+": it is signed with "+offered.Key) {
		t.Errorf("import by a stranger: exit %d, %s", a.code, a.stderr)
	}
	damaged := filepath.Join(stranger.dir, "damaged.tar.gz")
	if err := errors.Join(download(archive, damaged), download(archive+".sig", damaged+".sig")); err != nil {
		t.Fatal(err)
	}
	friend := newUser(t, "CORRALD_TRUST_KEY="+offered.Key)
	friend.serve()
	if err := flip(damaged); err != nil {
		t.Fatal(err)
	}
	if a := friend.corral("package", "import", damaged); a.code != 1 || !strings.Contains(a.stderr, offered.Name) || !strings.Contains(a.stderr, "digest is") {
		t.Errorf("import of a damaged archive: exit %d, %s", a.code, a.stderr)
	}
	// Both corralds made the same package of the same pilot, so that it is there already.
	if a := friend.corral("package", "import", archive); a.code != 1 || !strings.Contains(a.stderr, "in the catalog already") {
		t.Errorf("import by a friend: exit %d, %s", a.code, a.stderr)
	}
	if m := read[corral.Mirror](friend, "mirror", "add", "giver", "http://"+address); m.Packages != 1 {
		t.Errorf("mirror %+v, want one package", m)
	}
}

func download(from, to string) error {
	resp, err := http.Get(from)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return errors.Join(err, os.WriteFile(to, b, 0o600))
}

func flip(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(name, b, 0o600)
}
