package htcondor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder given as an HTCondor may contain anything.
func TestVersionReadsPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var err error
	for _, name := range []string{"sbin/condor_master", "bin/condor_version"} {
		file := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("$CondorVersion: 23.9.6 x"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Version(dir); v != "23.9.6" || err != nil {
		t.Errorf("Version = %q, %v", v, err)
	}
	if err := os.Truncate(filepath.Join(dir, "bin/condor_version"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Version(dir); err == nil || !strings.HasSuffix(err.Error(), "bin/condor_version: longer than 256 MiB") {
		t.Errorf("Version of a terabyte = %v", err)
	}
}
