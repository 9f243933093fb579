package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test program be the bare loop that it starts, without the second that the race
// detector would wait at its end.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == loopCommand {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
}

// programs builds corrald and pilot and returns where they are.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-w", "-o", dir, "./cmd/corrald", "./cmd/pilot")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	return dir
}

// A whole benchmark in small: it reports everything and leaves nothing.
func TestWholeBenchmark(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report.md")
	dir := t.TempDir()
	args := []string{"-bin", programs(t), "-dir", dir, "-out", out, "-tasks", "30", "-pairs", "2", "-hops", "4", "-queued", "200"}
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

func wantNothingLeft(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the directory: %v (%v)", entries, err)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		if line := read(name); strings.Contains(line, dir) {
			t.Errorf("left running: %s %q", name, line)
		}
	}
}

func TestLimitAlone(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"limit", "-tasks", "20", "-dir", dir}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "20 tasks, 2 wide") || !strings.Contains(stdout.String(), "median ") {
		t.Errorf("printed %q", &stdout)
	}
	wantNothingLeft(t, dir)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-tasks", "0"}, {"surplus"}, {"-nonsense"}} {
		if code := execute(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
	var stderr bytes.Buffer
	if code := execute(t.Context(), []string{"-bin", t.TempDir(), "-dir", t.TempDir()}, new(bytes.Buffer), &stderr); code != 1 {
		t.Errorf("without programs: exit code %d, want 1", code)
	}
	if !strings.Contains(stderr.String(), "make build") {
		t.Errorf("without programs: %q does not say how to make them", &stderr)
	}
}
