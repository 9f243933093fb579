package gridsite_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// Batch fork through a real sshd, one connection for all tests at once.
func TestSSHForkConformance(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openFork(t, conn) })
}

func TestSSHRun(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("0123456789abcdef", 1<<19) // 8 MiB
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
		t.Run(c.name, func(t *testing.T) {
			res, err := conn.Run(t.Context(), gridsite.Command{Argv: c.argv, Stdin: strings.NewReader(c.stdin)})
			if err != nil {
				t.Fatal(err)
			}
			if res.Exit != c.exit || string(res.Stdout) != c.stdout || !strings.Contains(string(res.Stderr), c.stderr) {
				t.Errorf("exit %d, %d bytes of stdout %.100q, stderr %.100q; want %d, %.100q, %q",
					res.Exit, len(res.Stdout), res.Stdout, res.Stderr, c.exit, c.stdout, c.stderr)
			}
		})
	}
}

func TestSSHRefusesArgv(t *testing.T) {
	t.Parallel()
	conn, err := gridsite.NewSSH("ssh://127.0.0.1:1", gridsite.SSHOptions{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{nil, {"echo", "a\x00b"}, {"echo", strings.Repeat("x", 128<<10)}} {
		if _, err := conn.Run(t.Context(), gridsite.Command{Argv: argv}); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Run(%.20q) = %v, want it invalid", argv, err)
		}
	}
}

// When its context ends, the command and all of its process group are killed, and what it did is unknown.
func TestSSHRunCancelled(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	conn := startSSHD(t).open()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	gone := make(chan error)
	go func() {
		f, err := os.Open(fifo)
		if err == nil {
			_, err = io.ReadFull(f, make([]byte, len("a\nb\n")))
		}
		cancel(enough)
		_, copyErr := io.Copy(io.Discard, f) // ends when the last of both writers is dead
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

func TestSSHRunBoundsOutput(t *testing.T) {
	t.Parallel()
	_, err := startSSHD(t).open().Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "yes & yes >&2"}})
	if err == nil || !strings.Contains(err.Error(), "bytes of output") {
		t.Errorf("Run = %v, want it to end for too much output", err)
	}
}

// A command is over when it exits, also if it leaves a process that holds its output.
func TestSSHRunLeavesBackground(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := startSSHD(t).open().Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", `cat "$1" & echo done`, "sh", fifo}})
	if err != nil || res.Exit != 0 || string(res.Stdout) != "done\n" {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if err := os.WriteFile(fifo, nil, 0); err != nil { // lets cat go
		t.Fatal(err)
	}
}

// What a broken source delivered is not a complete input, and the command does not go on with it.
func TestSSHRunBrokenStdin(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	_, err := startSSHD(t).open().Run(t.Context(), gridsite.Command{Argv: []string{"cat"}, Stdin: broken})
	if !errors.Is(err, io.ErrUnexpectedEOF) || corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome because of %v", err, io.ErrUnexpectedEOF)
	}
}

// More commands than sshd admits sessions wait for one another.
func TestSSHSessionsLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"MaxSessions 10", "MaxSessions 2", "MaxSessions 1"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			d := startSSHD(t, limit)
			conn := d.open()
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() { expectOutput(t, conn, "echo ok", "ok\n") })
			}
			all.Wait()
			if n := len(d.Logins()); n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}

func TestSSHPut(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
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
	large := bytes.Repeat([]byte{0, 255, '\n'}, 10<<20)
	if err := conn.Put(t.Context(), path, 0o600, bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); !bytes.Equal(b, large) {
		t.Errorf("%d bytes arrived, %v, want %d", len(b), err, len(large))
	}
}

func TestSSHPutFails(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	for _, c := range []struct {
		name string
		ctx  context.Context
		path string
		from io.Reader
		want string
	}{
		{"broken source", t.Context(), path, broken, "unexpected EOF"},
		{"context ended", ended, path, strings.NewReader("new"), "deadline exceeded"},
		{"no directory", t.Context(), filepath.Join(dir, "none", "file"), strings.NewReader("new"), "none"},
		{"a directory is there", t.Context(), dir, strings.NewReader("new"), "Is a directory"},
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
