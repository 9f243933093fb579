package pilot

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
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
	root, dir := newJob(t, order.Order{Tag: "setup-1", Setup: &order.Setup{Package: p.Name, Digest: p.Digest,
		SizeBytes: p.SizeBytes, URLs: []string{"file:///none/p.tar.gz", good}}})
	r, err := Setup(t.Context(), testLogger(t), dir)
	if err != nil || r.Outcome != corral.OutcomeDone || len(r.Log) != 3 || !strings.Contains(r.Log[0], "no such file") {
		t.Fatalf("Setup = %+v, %v, want done after two tries", r, err)
	}
	installed, err := staging.Dir(root, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(installed, "bin/pilot")); err != nil {
		t.Error(err)
	}
	if r, err := Setup(t.Context(), testLogger(t), dir); err != nil || r.Outcome != corral.OutcomeDone || len(r.Log) != 1 {
		t.Errorf("second Setup = %+v, %v, want done without a try", r, err)
	}
}

func TestSetupFailureIsTransientOnlyIfItMayPass(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(nil)
	away.Close()
	digest := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		name, url, want string
		transient       bool
	}{
		{"no server", away.URL + "/p.tar.gz", "connection refused", true},
		{"no file", "file:///none/p.tar.gz", "no such file", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, dir := newJob(t, order.Order{Tag: "setup-1", Setup: &order.Setup{Package: "p-1-x86_64-linux-static",
				Digest: digest, SizeBytes: 1, URLs: []string{c.url}}})
			r, err := Setup(t.Context(), testLogger(t), dir)
			if err != nil || r.Outcome != corral.OutcomeFailed || r.Transient != c.transient || !strings.Contains(r.Reason, c.want) {
				t.Errorf("Setup = %+v, %v, want failed, transient %v, with %q", r, err, c.transient, c.want)
			}
			if len(r.Log) != 1 {
				t.Errorf("log = %q, want one try", r.Log)
			}
		})
	}
}
