//go:build sites

package htcondor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

func TestPackNamesAMissingLibrary(t *testing.T) {
	withPackages(t)
	dir := filepath.Join(t.TempDir(), "incomplete")
	if err := os.CopyFS(dir, os.DirFS(unpacked[Worker])); err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob(filepath.Join(dir, "lib/libclassad.so.*"))
	if err != nil || len(libraries) != 1 {
		t.Fatalf("%q, %v", libraries, err)
	}
	if err := os.Remove(libraries[0]); err != nil {
		t.Fatal(err)
	}
	i, err := find(dir)
	if err != nil {
		t.Fatal(err)
	}
	i.libraries = i.libraries[:1] // its loader's folder is that of the complete one
	_, err = i.Pack(new(bytes.Buffer), Worker)
	if corral.KindOf(err) != corral.NotFound || !strings.Contains(err.Error(), "library "+filepath.Base(libraries[0])+" is in none of "+dir) {
		t.Errorf("Pack = %v, want NotFound naming the library", err)
	}
}
