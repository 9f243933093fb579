package pilot_test

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// TestProgramIsSmallAndStatic keeps the pilot something that any node can run, and quick to transfer.
func TestProgramIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(12_000_000); info.Size() > most {
		t.Errorf("the pilot has %d bytes, more than %d", info.Size(), most)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the pilot needs a dynamic loader")
		}
	}
	build, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range build.Deps {
		for _, heavy := range []string{"labstack/echo", "modernc.org/sqlite", "golang.org/x/crypto"} {
			if strings.Contains(m.Path, heavy) {
				t.Errorf("the pilot carries %s", m.Path)
			}
		}
	}
}
