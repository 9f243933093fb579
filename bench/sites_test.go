package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// In small: however many jobs there are, submitted or ended at once, no tick asks the site for more than three things.
func TestCommandsOfATick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"sites", "-dir", dir, "-count", "104"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	phases := 0
	for line := range strings.Lines(stdout.String()) {
		cells := strings.Split(line, "|")
		if len(cells) != 11 || strings.Contains(line, "---") || strings.Contains(line, "phase") {
			continue
		}
		phases++
		commands := strings.TrimSpace(cells[5])
		if n, err := strconv.Atoi(commands); err != nil || n > 3 {
			t.Errorf("%s commands in a tick: %s", commands, line)
		}
		if strings.Contains(line, "all end at once") && !strings.Contains(line, " 2 read") {
			t.Errorf("104 jobs ended, and were not read with two commands: %s", line)
		}
	}
	if phases != 4 {
		t.Errorf("%d phases:\n%s", phases, &stdout)
	}
	wantNothingLeft(t, dir)
}
