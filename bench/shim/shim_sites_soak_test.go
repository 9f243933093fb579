//go:build sites && soak

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// On a small scale a shim and a real Slurm are measured in the same way, and nothing is left behind.
func TestShimBesideSlurm(t *testing.T) {
	bin, err := programs.Plain()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	dir, err := os.MkdirTemp("/tmp", "b") // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var stdout, stderr bytes.Buffer
	args := []string{"-bin", bin, "-dir", dir, "-sides", "shim,slurm", "-jobs", "4", "-noops", "2", "-pending", "1",
		"-rules", "2"}
	if code := execute(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	for _, want := range []string{"| shim | Slurm, idle |", "(of 1000)", "| sleeping jobs by Makeflow | 4 in ",
		"| shim | --cluster | 2 |", "| shim | --slurm | 2 |", "| Slurm, idle | --slurm | 2 |"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &stdout)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}
