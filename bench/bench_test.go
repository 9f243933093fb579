package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// TestMain makes the test program run as the bare loop that it starts. It exits directly, because the race detector
// would wait for a second at a normal end.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == loopCommand {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
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

// A whole small benchmark reports everything and leaves nothing behind.
func TestWholeBenchmark(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report.md")
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), append(small(t, dir), "-out", out), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	for _, want := range []string{
		"30 independent", "| **corral ÷ bare loop**", "| corrald ", "A chain of 4", "200 tasks queued", "| growth per task",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &stdout)
		}
	}
	if written, err := os.ReadFile(out); err != nil || !bytes.Equal(written, stdout.Bytes()) {
		t.Errorf("-out has %q (%v), want what was printed", written, err)
	}
	wantNothingLeft(t, dir)
}

// small is the command line of a benchmark below dir that takes two seconds.
func small(t *testing.T, dir string) []string {
	t.Helper()
	bin, err := programs.Plain()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"-bin", bin, "-dir", dir, "-tasks", "30", "-rounds", "1", "-hops", "4", "-queued", "200"}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-tasks", "0"}, {"surplus"}, {"-nonsense"}} {
		if code := execute(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
	var stderr bytes.Buffer
	args := []string{"-bin", t.TempDir(), "-dir", t.TempDir()}
	if code := execute(t.Context(), args, new(bytes.Buffer), &stderr); code != 1 {
		t.Errorf("without programs: exit code %d, want 1", code)
	}
	if !strings.Contains(stderr.String(), "make build") {
		t.Errorf("without programs: %q does not say how to make them", &stderr)
	}
}
