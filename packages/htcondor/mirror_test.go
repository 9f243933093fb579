//go:build sites

package htcondor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// An image of Debian often has no package lists, but its apt knows the mirror.
func TestMirrorWithoutLists(t *testing.T) {
	dir := t.TempDir()
	config := fmt.Sprintf("Dir::State::Lists \"%[1]s/lists\";\nDir::Cache \"%[1]s\";\nDir::Etc::SourceList \"%[1]s/sources\";\n"+
		"Dir::Etc::SourceParts \"%[1]s/lists\";\n", dir)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o700),
		os.WriteFile(filepath.Join(dir, "sources"), []byte("deb http://mirror.example/debian stable main\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", filepath.Join(dir, "config"))
	if site, err := mirror(t.Context()); site != "http://mirror.example/debian" || err != nil {
		t.Errorf("mirror = %q, %v", site, err)
	}
}
