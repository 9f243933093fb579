package pilot

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

func TestSetupInstallsOnce(t *testing.T) {
	t.Parallel()
	mirror := staging.Mirror{Dir: filepath.Join(t.TempDir(), "mirror")}
	p, err := mirror.Build(packages.Header{What: "corral-pilot", Version: "1",
		Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}},
		fstest.MapFS{"bin/pilot": {Data: []byte("pilot"), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	good, err := mirror.URL(p)
	if err != nil {
		t.Fatal(err)
	}
	setup := orderFor(t, p, "file:///none/p.tar.gz", good)
	setup.Sources[0].Mirror = 7
	root, dir := newJob(t, jobfiles.Order{Tag: "setup-1", Setup: setup})
	r, err := Setup(t.Context(), testLogger(t), dir)
	if err != nil || r.Outcome != corral.OutcomeDone || len(r.Tries) != 2 {
		t.Fatalf("Setup = %+v, %v, want done after two tries", r, err)
	}
	if bad := r.Tries[0]; bad.OK || bad.Mirror != 7 || !strings.Contains(bad.Line, "no such file") {
		t.Errorf("first try %+v", bad)
	}
	if good := r.Tries[1]; !good.OK || good.Mirror != 0 || good.Bytes != p.SizeBytes {
		t.Errorf("second try %+v", good)
	}
	installed, err := staging.Dir(root, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(installed, "bin/pilot")); err != nil {
		t.Error(err)
	}
	if r, err := Setup(t.Context(), testLogger(t), dir); err != nil || r.Outcome != corral.OutcomeDone || len(r.Tries) != 0 {
		t.Errorf("second Setup = %+v, %v, want done without a try", r, err)
	}
}

func TestSetupFailureIsTransientOnlyIfItMayPass(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(nil)
	away.Close()
	p := packages.Package{Name: "p-1-x86_64-linux-static", What: "p", Version: "1", SizeBytes: 1,
		Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}, Digest: "sha256:" + strings.Repeat("0", 64)}
	for _, c := range []struct {
		name, url, want string
		transient       bool
	}{
		{"no server", away.URL + "/p.tar.gz", "connection refused", true},
		{"no file", "file:///none/p.tar.gz", "no such file", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, dir := newJob(t, jobfiles.Order{Tag: "setup-1", Setup: orderFor(t, p, c.url)})
			r, err := Setup(t.Context(), testLogger(t), dir)
			if err != nil || r.Outcome != corral.OutcomeFailed || r.Transient != c.transient || !strings.Contains(r.Reason, c.want) {
				t.Errorf("Setup = %+v, %v, want failed, transient %v, with %q", r, err, c.transient, c.want)
			}
			if len(r.Tries) != 1 || r.Tries[0].Reached == c.transient {
				t.Errorf("tries = %+v, want one, reached: %v", r.Tries, !c.transient)
			}
		})
	}
}

// orderFor returns an order for a package, signed with a key that the order trusts.
func orderFor(t *testing.T, p packages.Package, urls ...string) *jobfiles.Setup {
	t.Helper()
	signer, err := packages.LoadSigner(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	s := signer.Sign(p)
	o := &jobfiles.Setup{Package: p.Name, What: p.What, Version: p.Version, Platform: p.Platform, Digest: p.Digest, SizeBytes: p.SizeBytes,
		Key: string(s.Key), Signature: s.Signature, Trusted: []string{string(s.Key)}}
	for _, u := range urls {
		o.Sources = append(o.Sources, jobfiles.Source{URL: u})
	}
	return o
}

// A package with an invalid signature is refused by name, and no mirror is asked.
func TestSetupRefusesInvalidSignatures(t *testing.T) {
	t.Parallel()
	asked := false
	mirror := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer mirror.Close()
	p := packages.Package{Name: "p-1-x86_64-linux-static", What: "p", Version: "1", SizeBytes: 1,
		Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}, Digest: "sha256:" + strings.Repeat("0", 64)}
	for _, c := range []struct {
		name string
		edit func(*jobfiles.Setup)
		want string
	}{
		{"unsigned", func(o *jobfiles.Setup) { o.Key, o.Signature = "", "" }, "it is not signed"},
		{"unknown key", func(o *jobfiles.Setup) { o.Trusted = orderFor(t, p).Trusted }, "not trusted here"},
		{"other archive", func(o *jobfiles.Setup) { o.Digest = "sha256:" + strings.Repeat("1", 64) }, "not that of"},
		{"other size", func(o *jobfiles.Setup) { o.SizeBytes++ }, "not that of"},
	} {
		o := orderFor(t, p, mirror.URL)
		c.edit(o)
		root, dir := newJob(t, jobfiles.Order{Tag: "setup-1", Setup: o})
		r, err := Setup(t.Context(), testLogger(t), dir)
		if err != nil || r.Outcome != corral.OutcomeFailed || r.Transient || !strings.Contains(r.Reason, "package "+p.Name+": ") || !strings.Contains(r.Reason, c.want) {
			t.Errorf("%s: Setup = %+v, %v, want failed for good with %q", c.name, r, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(root, "packages")); err == nil || asked {
			t.Errorf("%s: something was left or asked for", c.name)
		}
	}
}
