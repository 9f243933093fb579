package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// A folder is claimed once; a second claim finds it with its key, and later with its run.
func TestClaimAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "shim")
	first, made, err := Claim(dir, "unix:/s", "mine")
	if err != nil || !made || first.Key == "" {
		t.Fatalf("%+v, %v, %v", first, made, err)
	}
	again, made, err := Claim(dir, "unix:/other", "other")
	if err != nil || made || again != first {
		t.Errorf("%+v, %v, %v; want %+v", again, made, err, first)
	}
	again.Run = 7
	for range 2 {
		if err := again.Link("/opt/corral-slurm"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Found(filepath.Join(dir, "sbatch"), func(string) string { return "" })
	if err != nil || got != again || got.Base() != 7_000_000 {
		t.Errorf("found %+v, %v; want %+v", got, err, again)
	}
	if to, err := os.Readlink(filepath.Join(dir, "squeue")); err != nil || to != "/opt/corral-slurm" {
		t.Errorf("squeue leads to %q, %v", to, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Other users' files are not touched.
func TestClaimRefusesForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Claim(dir, "unix:/s", "mine")
	if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "has a file sbatch") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// In a job the folder is known, regardless of how its commands were found; elsewhere the command must be in a shim's
// folder.
func TestFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, _, err := Claim(dir, "unix:/s", "mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/usr/bin/squeue", "squeue-that-is-nowhere"} {
		got, err := Found(name, func(name string) string { return map[string]string{"CORRAL_SHIM": dir}[name] })
		if err != nil || got != f {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Found("/usr/bin/squeue", func(string) string { return "" }); corral.KindOf(err) != corral.NotFound {
		t.Error(err)
	}
}
