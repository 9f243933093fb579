//go:build soak

package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPilotOfTheOtherArchitecture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pilot")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./cmd/pilot")
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	checkPilot(t, file)
}
