//go:build soak

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/programs"
)

// A whole benchmark in small: it reports everything and leaves nothing.
func TestWholeBenchmark(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report.md")
	dir := t.TempDir()
	bin, err := programs.Plain()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-bin", bin, "-dir", dir, "-out", out, "-tasks", "30", "-rounds", "2", "-hops", "4", "-queued", "200"}
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	for _, want := range []string{"30 independent", "| **corral ÷ bare loop**", "| corrald ", "A chain of 4", "200 tasks queued", "| growth per task"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &stdout)
		}
	}
	if written, err := os.ReadFile(out); err != nil || !bytes.Equal(written, stdout.Bytes()) {
		t.Errorf("-out has %q (%v), want what was printed", written, err)
	}
	wantNothingLeft(t, dir)

	interrupted, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	if code := execute(interrupted, args, new(bytes.Buffer), interruptWriter{interrupt}); code != 1 {
		t.Errorf("interrupted: exit code %d, want 1", code)
	}
	wantNothingLeft(t, dir)
}

// interruptWriter interrupts when something is said: a round has been measured.
type interruptWriter struct{ interrupt func() }

func (w interruptWriter) Write(p []byte) (int, error) {
	w.interrupt()
	return len(p), nil
}

// In small: however many jobs there are, submitted or ended at once, no tick asks the site for more than three things.
func TestCommandsOfATick(t *testing.T) {
	t.Parallel()
	phases := measureSites(t, t.TempDir(), 104)
	for _, ph := range phases {
		if n := most(ph.steps, func(s step) int { return s.commands }); n > 3 {
			t.Errorf("%s: %d commands in a tick", ph.name, n)
		}
		if ph.name == "all end at once" && ph.commands["read"] != 2 {
			t.Errorf("104 jobs ended, and were not read with two commands: %v", ph.commands)
		}
	}
	if len(phases) != 4 {
		t.Errorf("%d phases: %+v", len(phases), phases)
	}
}
