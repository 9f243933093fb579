//go:build soak

package main

import (
	"bytes"
	"context"
	"testing"
)

// A benchmark that is interrupted after its first round leaves nothing behind.
func TestInterruptedBenchmark(t *testing.T) {
	dir := t.TempDir()
	interrupted, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	if code := execute(interrupted, small(t, dir), new(bytes.Buffer), interruptWriter{interrupt}); code != 1 {
		t.Errorf("interrupted: exit code %d, want 1", code)
	}
	wantNothingLeft(t, dir)
}

// interruptWriter interrupts at the first output, when a round has been measured.
type interruptWriter struct{ interrupt func() }

func (w interruptWriter) Write(p []byte) (int, error) {
	w.interrupt()
	return len(p), nil
}

// On a small scale: no tick runs more than three commands at the site, no matter how many jobs are submitted or end at
// once.
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
