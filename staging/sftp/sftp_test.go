//go:build sites

package sftp_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/sftp"
)

// serve runs a real sshd that accepts the owner of home, and returns its URL.
func serve(t *testing.T, lines ...string) (base, home string) {
	t.Helper()
	sshd := gridsitetest.StartSSHD(t, lines...)
	return "sftp://" + sshd.Address(), sshd.Home
}

const internalSFTP = "Subsystem sftp internal-sftp"

func TestOpen(t *testing.T) {
	t.Parallel()
	base, home := serve(t, internalSFTP)
	open := func(raw string, at staging.Position) (staging.Stream, error) {
		t.Helper()
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return sftp.Opener(ssh.Options{Home: home})(t.Context(), u, at)
	}
	content := bytes.Repeat([]byte("0123456789"), 500_000)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	var version string
	for _, offset := range []int64{0, 7, 4_999_999} {
		s, err := open(base+file, staging.Position{Offset: offset, Validator: version})
		if err != nil {
			t.Fatal(err)
		}
		version = s.Start.Validator
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, content[offset:]) || s.Start.Offset != offset || !s.Resumable {
			t.Errorf("from %d: %d bytes, %v, begins at %d", offset, len(got), err, s.Start.Offset)
		}
		s.Close()
	}
	if err := os.WriteFile(file, content[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := open(base+file, staging.Position{Offset: 7, Validator: version})
	if err != nil || s.Start.Offset != 0 {
		t.Fatalf("another version begins at %d, %v, want its beginning", s.Start.Offset, err)
	}
	s.Close() // during the transfer

	for _, tt := range []struct {
		what, url string
		kind      corral.Kind
	}{
		{"what is not there", base + "/no/such/file", corral.Failed},
		{"as a user whom the server refuses", strings.Replace(base, "//", "//nosuchuser@", 1) + file, corral.Failed},
		{"where nobody listens", "sftp://127.0.0.1:1/file", corral.Unavailable},
	} {
		if _, err := open(tt.url, staging.Position{}); corral.KindOf(err) != tt.kind {
			t.Errorf("Open of %s = %v, want it %s", tt.what, err, tt.kind)
		}
	}
}

// A host whose key was never accepted cannot be a mirror.
func TestUnknownHost(t *testing.T) {
	t.Parallel()
	base, home := serve(t, internalSFTP)
	if err := os.Remove(filepath.Join(home, ".ssh", "known_hosts")); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base + "/file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sftp.Opener(ssh.Options{Home: home})(t.Context(), u, staging.Position{}); corral.KindOf(err) != corral.Failed {
		t.Errorf("Open = %v, want it Failed", err)
	}
}

func TestServerWithoutSFTP(t *testing.T) {
	t.Parallel()
	base, home := serve(t)
	u, err := url.Parse(base + "/file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sftp.Opener(ssh.Options{Home: home})(t.Context(), u, staging.Position{}); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "no sftp") {
		t.Errorf("Open = %v, want it Failed: the server has no sftp", err)
	}
}

// This test reads a complete mirror behind an sftp server: index, signature and archive.
func TestMirrorBehindSFTP(t *testing.T) {
	t.Parallel()
	m := staging.Mirror{Dir: filepath.Join(t.TempDir(), "mirror")}
	p, err := m.Build(packages.Header{What: "worker", Version: "1", Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}},
		fstest.MapFS{"bin/x": {Data: bytes.Repeat([]byte("x"), 1000), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := packages.LoadSigner(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Vouch(signer.Sign(p)); err != nil {
		t.Fatal(err)
	}
	base, home := serve(t, internalSFTP)
	f := staging.NewFetcher(slog.New(slog.DiscardHandler))
	f.Open["sftp"] = sftp.Opener(ssh.Options{Home: home})
	index, err := f.Index(t.Context(), base+m.Dir)
	if err != nil || len(index) != 1 || index[0].Check([]packages.PublicKey{signer.Public()}) != nil {
		t.Fatalf("Index = %v, %v, want the signed package", index, err)
	}
	at, err := staging.URLBelow(base+m.Dir, p)
	if err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	if tries, err := f.Fetch(t.Context(), staging.Source{Package: p, URLs: []string{at}}, dst); err != nil || !tries[0].Reached {
		t.Errorf("Fetch = %v, %v", tries, err)
	}
	if err := packages.Verify(t.Context(), dst, p); err != nil {
		t.Error(err)
	}
}
