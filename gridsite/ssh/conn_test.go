package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/local"
)

// These tests apply to every transport; conn_sites_test.go runs them over the real sshd.
func TestConn(t *testing.T) {
	t.Parallel()
	for name, conn := range map[string]gridsite.Conn{"local": local.Conn{}, "ssh": serveSSH(t)} {
		t.Run(name, func(t *testing.T) { testConn(t, conn) })
	}
}

func testConn(t *testing.T, conn gridsite.Conn) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, gridsite.Conn)
	}{
		{"run", connRun},
		{"run cancelled", connCancelled},
		{"run bounds output", connBoundsOutput},
		{"run leaves background", connLeavesBackground},
		{"run with broken stdin", connBrokenStdin},
		{"put", connPut},
		{"put fails", connPutFails},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, conn)
		})
	}
}

func connRun(t *testing.T, conn gridsite.Conn) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB, twice ssh's window
	for _, c := range []struct {
		name           string
		argv           []string
		stdin          string
		exit           int
		stdout, stderr string // stderr: contained
	}{
		{"stdin to stdout", []string{"cat"}, "in\x00put", 0, "in\x00put", ""},
		{"large stdin to stdout", []string{"cat"}, large, 0, large, ""},
		{"stdin that nobody reads", []string{"true"}, large, 0, "", ""},
		{"no stdin", []string{"cat"}, "", 0, "", ""},
		{"no newline at the end", []string{"printf", "a"}, "", 0, "a", ""},
		{"exit status", []string{"sh", "-c", "echo no >&2; exit 3"}, "", 3, "", "no\n"},
		{"signal", []string{"sh", "-c", "kill -TERM $$"}, "", 143, "", ""},
		{"argument vector", []string{"printf", "%s|", "a b", "$HOME", "'", "!!", "\n", `\0101`}, "", 0, "a b|$HOME|'|!!|\n|\\0101|", ""},
		{"missing command", []string{"no-such-command"}, "", 127, "", "no-such-command"},
		{"missing path", []string{"/no/such/command"}, "", 127, "", "/no/such/command"},
		{"not executable", []string{plain}, "", 126, "", "ermission denied"},
	} {
		res, err := conn.Run(t.Context(), gridsite.Command{Argv: c.argv, Stdin: strings.NewReader(c.stdin)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if res.Exit != c.exit || string(res.Stdout) != c.stdout || !strings.Contains(string(res.Stderr), c.stderr) {
			t.Errorf("%s: exit %d, %d bytes of stdout %.100q, stderr %.100q; want %d, %.100q, %q",
				c.name, res.Exit, len(res.Stdout), res.Stdout, res.Stderr, c.exit, c.stdout, c.stderr)
		}
	}
}

func mkfifo(t *testing.T) string {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return fifo
}

// connCancelled checks that the command's process group is killed when its context ends, and that the outcome is
// unknown.
func connCancelled(t *testing.T, conn gridsite.Conn) {
	fifo := mkfifo(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	gone := make(chan error)
	go func() {
		f, err := os.Open(fifo)
		if err == nil {
			_, err = io.ReadFull(f, make([]byte, len("a\nb\n")))
		}
		cancel(enough)
		_, copyErr := io.Copy(io.Discard, f) // ends when both writers are dead
		gone <- errors.Join(err, copyErr, f.Close())
	}()
	script := `exec 3>"$1"; sh -c 'trap "" TERM; echo a >&3; while :; do sleep 1; done' & echo b >&3; wait`
	_, err := conn.Run(ctx, gridsite.Command{Argv: []string{"sh", "-c", script, "sh", fifo}})
	if !errors.Is(err, enough) || corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome because of %v", err, enough)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

func connBoundsOutput(t *testing.T, conn gridsite.Conn) {
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "yes & yes >&2"}})
	if err == nil || !strings.Contains(err.Error(), "bytes of output") {
		t.Errorf("Run = %v, want it to end for too much output", err)
	}
}

// connLeavesBackground checks that a command is over when it exits, even if a remaining process holds its output open.
func connLeavesBackground(t *testing.T, conn gridsite.Conn) {
	fifo := mkfifo(t)
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", `cat "$1" & echo done`, "sh", fifo}})
	if err != nil || res.Exit != 0 || string(res.Stdout) != "done\n" {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if err := os.WriteFile(fifo, nil, 0); err != nil { // releases cat
		t.Fatal(err)
	}
}

// connBrokenStdin checks that partial input from a failing source does not count as complete.
func connBrokenStdin(t *testing.T, conn gridsite.Conn) {
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"cat"}, Stdin: broken()})
	if !errors.Is(err, io.ErrUnexpectedEOF) || corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome because of %v", err, io.ErrUnexpectedEOF)
	}
}

func broken() io.Reader {
	return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
}

func connPut(t *testing.T, conn gridsite.Conn) {
	path := filepath.Join(t.TempDir(), "a 'b' $c")
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o444, 0o777} {
		if err := conn.Put(t.Context(), path, mode, strings.NewReader(mode.String())); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
		}
	}
	large := bytes.Repeat([]byte{0, 255, '\n'}, 2<<20)
	if err := conn.Put(t.Context(), path, 0o600, bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); !bytes.Equal(b, large) {
		t.Errorf("%d bytes arrived, %v, want %d", len(b), err, len(large))
	}
}

func connPutFails(t *testing.T, conn gridsite.Conn) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		path string
		from io.Reader
		want string // part of the error
	}{
		{"broken source", t.Context(), path, broken(), "unexpected EOF"},
		{"context ended", ended, path, strings.NewReader("new"), "deadline exceeded"},
		{"no directory", t.Context(), filepath.Join(dir, "none", "file"), strings.NewReader("new"), filepath.Join(dir, "none")},
		{"a directory is there", t.Context(), dir, strings.NewReader("new"), dir},
	} {
		if err := conn.Put(c.ctx, c.path, 0o600, c.from); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Put = %v, want %q", c.name, err, c.want)
		}
	}
	if b, err := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the old file holds %q, %v", b, err)
	}
	if names, err := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
