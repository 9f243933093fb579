package htcondor

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/packages"
)

// host returns a program of this machine.
func host(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func interpreterOf(t *testing.T, b []byte) string {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text, err := io.ReadAll(p.Open())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Fatal("no interpreter")
	return ""
}

func TestRelinkedProgramRuns(t *testing.T) {
	t.Parallel()
	was := host(t)
	before := bytes.Clone(was)
	loader := interpreterOf(t, was)
	room := append([]byte("/tmp/../tmp/.."+loader), make([]byte, 400)...) // the same loader by a longer path
	b, at, err := relink(was, room, "$ORIGIN/../nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(was, before) {
		t.Error("relink changed what it was given")
	}
	if got := interpreterOf(t, b); got != string(room) || !bytes.Equal(b[at:at+int64(len(room))], room) {
		t.Errorf("the loader is %q, and %q at %d; want %q", got, b[at:at+40], at, room)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := f.DynString(elf.DT_RPATH); err != nil || len(paths) != 1 || paths[0] != "$ORIGIN/../nowhere" {
		t.Errorf("rpath %q, %v", paths, err)
	}
	program := filepath.Join(t.TempDir(), "cat")
	// A program that another test starts meanwhile would have the file open for a moment, between fork and exec, and a
	// file that is open for writing cannot be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(program, b, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader("meow")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "meow" {
		t.Errorf("the program printed %q, %v", out, err)
	}
}

// Packages are also built from unpacked packages: relinking a relinked program uses the same place.
func TestRelinkAgainAndAgain(t *testing.T) {
	t.Parallel()
	want, at, err := relink(host(t), packages.Placeholder(placeBytes), "$ORIGIN/a")
	if err != nil {
		t.Fatal(err)
	}
	b := want
	for _, loader := range [][]byte{[]byte("/lib/short\x00"), bytes.Repeat([]byte("/long"), 400), packages.Placeholder(placeBytes)} {
		var again int64
		if b, again, err = relink(b, loader, "$ORIGIN/a"); err != nil {
			t.Fatal(err)
		}
		if got := interpreterOf(t, b); got != string(loader) || again != at {
			t.Errorf("the loader is %q at %d, want %q at %d", got, again, loader, at)
		}
	}
	if len(b) > len(want)+3*len("$ORIGIN/a\x00") {
		t.Errorf("it has grown from %d to %d bytes", len(want), len(b))
	}
}

func TestWithoutRunPath(t *testing.T) {
	t.Parallel()
	b, _, err := relink(host(t), packages.Placeholder(placeBytes), "$ORIGIN/lib")
	if err == nil {
		b, err = withoutRunPath(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := f.DynString(elf.DT_RPATH); err != nil || len(paths) != 0 {
		t.Errorf("rpath %q, %v, want none", paths, err)
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) == 0 {
		t.Errorf("it needs %q (%v) now", libraries, err)
	}
}

func TestRelinkRefuses(t *testing.T) {
	t.Parallel()
	header := func(change func(h *elf.Header64)) []byte {
		b := host(t)
		var h elf.Header64
		if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
			t.Fatal(err)
		}
		change(&h)
		if _, err := binary.Encode(b, binary.LittleEndian, h); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name    string
		program []byte
		want    string
	}{
		{"nothing", nil, "not a 64-bit"},
		{"a script", []byte("#!/bin/sh\n" + strings.Repeat("#", 100)), "not a 64-bit"},
		{"32 bits", header(func(h *elf.Header64) { h.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS32) }), "64-bit"},
		{"cut off", host(t)[:1000], "damaged"},
		{"table outside", header(func(h *elf.Header64) { h.Phoff = 1 << 63 }), "damaged"},
		{"no segments", header(func(h *elf.Header64) { h.Phnum = 0 }), "linked statically"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := relink(c.program, packages.Placeholder(placeBytes), "$ORIGIN/../lib"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("relink = %v, want a word of %q", err, c.want)
			}
		})
	}
}

func FuzzRelink(f *testing.F) {
	f.Add(host(f))
	f.Add([]byte(elf.ELFMAG))
	f.Fuzz(func(t *testing.T, program []byte) {
		b, at, err := relink(program, packages.Placeholder(placeBytes), "$ORIGIN/../lib")
		if err == nil && (at < 0 || at+placeBytes > int64(len(b)) || !bytes.Equal(b[at:at+placeBytes], packages.Placeholder(placeBytes))) {
			t.Errorf("no placeholder at %d", at)
		}
		if _, err := withoutRunPath(bytes.Clone(program)); err != nil {
			return
		}
	})
}
