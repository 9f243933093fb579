package gridsite_test

import (
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
)

func TestDialUnknown(t *testing.T) {
	for _, contact := range []string{"", "local", "ssh://", "ssh://host/path", "ssh://user:word@host", "ssh://-o@host", "gopher://host"} {
		_, err := gridsite.Dial(t.Context(), contact)
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("Dial(%q) = %v, want an invalid error", contact, err)
		}
	}
}

func TestLocalRun(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		argv           []string
		stdin          string
		exit           int
		stdout, stderr string // stderr: contained
	}{
		{"stdin to stdout", []string{"cat"}, "in\x00put", 0, "in\x00put", ""},
		{"stdin that nobody reads", []string{"true"}, strings.Repeat("x", 1<<20), 0, "", ""},
		{"no stdin", []string{"cat"}, "", 0, "", ""},
		{"exit status", []string{"sh", "-c", "echo no >&2; exit 3"}, "", 3, "", "no\n"},
		{"signal", []string{"sh", "-c", "kill -TERM $$"}, "", 143, "", ""},
		{"argument vector", []string{"printf", "%s|", "a b", "$HOME", "'"}, "", 0, "a b|$HOME|'|", ""},
		{"missing command", []string{"no-such-command"}, "", 127, "", "no-such-command"},
		{"missing path", []string{"/no/such/command"}, "", 127, "", "/no/such/command"},
		{"not executable", []string{plain}, "", 126, "", "permission denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := dial(t).Run(t.Context(), gridsite.Command{Argv: c.argv, Stdin: strings.NewReader(c.stdin)})
			if err != nil {
				t.Fatal(err)
			}
			if res.Exit != c.exit || string(res.Stdout) != c.stdout || !strings.Contains(string(res.Stderr), c.stderr) {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, %q, %q", res.Exit, res.Stdout, res.Stderr, c.exit, c.stdout, c.stderr)
			}
		})
	}
}

// When its context ends, the command and all of its process group are killed, and what it did is unknown.
func TestLocalRunCancelled(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
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
	_, err := dial(t).Run(ctx, gridsite.Command{Argv: []string{"sh", "-c", script, "sh", fifo}})
	if !errors.Is(err, enough) || corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome because of %v", err, enough)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

func TestLocalRunBoundsOutput(t *testing.T) {
	t.Parallel()
	_, err := dial(t).Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "yes & yes >&2"}})
	if err == nil || !strings.Contains(err.Error(), "bytes of output") {
		t.Errorf("Run = %v, want it to end for too much output", err)
	}
}

// A command is over when it exits, also if it leaves a process that holds its output.
func TestLocalRunLeavesBackground(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := dial(t).Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", `cat "$1" & echo done`, "sh", fifo}})
	if err != nil || res.Exit != 0 || string(res.Stdout) != "done\n" {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if err := os.WriteFile(fifo, nil, 0); err != nil { // lets cat go
		t.Fatal(err)
	}
}

func TestLocalPut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a 'b' $c")
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o444, 0o777} {
		if err := dial(t).Put(t.Context(), path, mode, strings.NewReader(mode.String())); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
		}
	}
	if b, err := os.ReadFile(path); string(b) != fs.FileMode(0o777).String() {
		t.Errorf("content %q, %v", b, err)
	}
}

func TestLocalPutFails(t *testing.T) {
	t.Parallel()
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
		want error
	}{
		{"broken source", t.Context(), path, broken, io.ErrUnexpectedEOF},
		{"context ended", ended, path, strings.NewReader("new"), context.DeadlineExceeded},
		{"no directory", t.Context(), filepath.Join(dir, "none", "file"), strings.NewReader("new"), fs.ErrNotExist},
		{"a directory is there", t.Context(), dir, strings.NewReader("new"), syscall.EEXIST},
	} {
		if err := dial(t).Put(c.ctx, c.path, 0o600, c.from); !errors.Is(err, c.want) {
			t.Errorf("%s: Put = %v, want %v", c.name, err, c.want)
		}
	}
	if b, err := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the old file holds %q, %v", b, err)
	}
	if names, err := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
