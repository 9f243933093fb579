//go:build sites && soak

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In small: each peer runs its tasks, and is measured.
func TestPeersRun(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "../scripts/peers").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(strings.TrimSpace(string(folder)), "bin")+":/usr/sbin:/usr/bin:/sbin:/bin")
	for _, p := range peers() {
		s, err := p.run(t.Context(), t.TempDir(), 7)
		if err != nil || s.tasks != 7 || s.span <= 0 {
			t.Errorf("%s: %+v, %v", p.name, s, err)
		}
	}
}
