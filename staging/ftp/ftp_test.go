//go:build sites

package ftp_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/ftp"
)

func TestMain(m *testing.M) {
	cmd := exec.Command("../../scripts/vsftpd", "--fetch")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		panic(fmt.Sprintf("fetching vsftpd: %v", err))
	}
	os.Exit(m.Run())
}

// serve runs a real FTP server on dir and returns its URL.
func serve(t *testing.T, dir string) string {
	t.Helper()
	for range 10 { // another program may use the port
		address := fmt.Sprint("127.0.0.1:", 10000+rand.IntN(10000)) // a range outside automatic assignment
		if serveAt(t, dir, address) {
			return "ftp://" + address
		}
	}
	t.Fatal("the server does not start")
	return ""
}

// serveAt reports whether the server answers. If it does not, it has ended.
func serveAt(t *testing.T, dir, address string) bool {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("../../scripts/vsftpd", dir, port)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has a process per session
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		select {
		case <-ended:
		default:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	})
	end := time.NewTimer(3 * time.Minute)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			t.Fatal("the server does not answer")
		case <-ended:
			return false
		case <-tick.C:
			if greets(address) {
				return true
			}
		}
	}
}

// greets reports whether an FTP server answers.
func greets(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	greeting := make([]byte, len("220 "))
	_, err = io.ReadFull(conn, greeting)
	return err == nil && string(greeting) == "220 "
}

func open(t *testing.T, rawURL string, offset int64) (staging.Stream, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return ftp.Open(t.Context(), u, staging.Position{Offset: offset})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	base := serve(t, dir)
	for _, offset := range []int64{0, 7, 999_999} {
		s, err := open(t, base+"/file", offset)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, content[offset:]) || s.Start.Offset != offset || !s.Resumable {
			t.Errorf("from %d: %d bytes, %v, begins at %d", offset, len(got), err, s.Start.Offset)
		}
		s.Close()
	}
	s, err := open(t, base+"/file", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	s.Close() // during the transfer

	if _, err := open(t, base+"/none", 0); corral.KindOf(err) != corral.Failed {
		t.Errorf("Open of what is not there = %v, want Failed", err)
	}
	if _, err := open(t, "ftp://127.0.0.1:1/file", 0); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Open where nobody listens = %v, want Unavailable", err)
	}
	if _, err := open(t, "ftp://ada:secret@"+base[len("ftp://"):]+"/file", 0); corral.KindOf(err) != corral.Failed {
		t.Errorf("Open as an unknown user = %v, want Failed", err)
	}
}

// This test reads a complete mirror behind an FTP server: index, signature and archive.
func TestMirrorBehindFTP(t *testing.T) {
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
	base := serve(t, m.Dir)
	f := staging.NewFetcher(slog.New(slog.DiscardHandler))
	f.Open["ftp"] = ftp.Open
	index, err := f.Index(t.Context(), base)
	if err != nil || len(index) != 1 || index[0].Check([]packages.PublicKey{signer.Public()}) != nil {
		t.Fatalf("Index = %v, %v, want the signed package", index, err)
	}
	at, err := staging.URLBelow(base, p)
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
