package run_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/work/run"
)

// Run returns the exit status of a script, and its output is in its file.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.sh"), []byte("#!/bin/sh\necho $0 $1 $MARK\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for k, c := range []struct {
		argv    []string
		exit    int
		why     string // text of err; "": no error
		printed string
	}{
		{argv: []string{"true"}},
		{argv: []string{"own.sh", "one"}, printed: dir + "/own.sh one here\n"},
		{argv: []string{"./own.sh"}, printed: dir + "/own.sh here\n"},
		{argv: []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 7"}, exit: 7, why: "exit status 7", printed: "out\nerr\n"},
		{argv: []string{"/bin/sh", "-c", "kill -9 $$"}, exit: -9, why: "killed by signal 9"},
		{argv: []string{"nothing/here"}, exit: -1, why: "no such file or directory"},
	} {
		out := filepath.Join(t.TempDir(), "scripts", "output")
		exit, err := run.Process{Argv: c.argv, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "MARK=here"}, Output: out}.Run(t.Context())
		if exit != c.exit || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%d: %v ended with %d, %v, want %d, %q", k, c.argv, exit, err, c.exit, c.why)
		}
		text, err := os.ReadFile(out)
		if c.printed == "" && !errors.Is(err, fs.ErrNotExist) || c.printed != "" && string(text) != c.printed {
			t.Errorf("%d: %v printed %q, %v, want %q", k, c.argv, text, err, c.printed)
		}
	}
}

// A cancelled script is killed with its child processes.
func TestRunIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(dir, "begun")
	p := run.Process{Dir: dir, Output: filepath.Join(dir, "output"), Env: []string{"PATH=/usr/bin:/bin"},
		Argv: []string{"/bin/sh", "-c", "mkfifo begun; sleep 600 & echo >begun; wait"}}
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			if f, err := os.Open(fifo); err == nil { // wait for the writer
				_, _ = io.ReadAll(f) // which would be killed without a reader
				_ = f.Close()
				return
			}
		}
	}()
	if exit, err := p.Run(ctx); exit != -9 || err == nil {
		t.Errorf("it ended with %d, %v", exit, err)
	}
}
