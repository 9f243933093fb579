package packages

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
)

// movable is a program of 200 bytes that contains its loader's path at offset 50, in 100 bytes.
var (
	movable = append(append(bytes.Repeat([]byte("p"), 50), Placeholder(100)...), bytes.Repeat([]byte("q"), 50)...)
	loader  = Relocation{File: "bin/program", Offset: 50, Length: 100, Text: "lib/loader"}

	movableFiles = fstest.MapFS{
		"bin/program": {Data: movable, Mode: 0o755},
		"bin/text":    {Data: movable, Mode: 0o644},
		"lib/loader":  {Data: []byte("loader"), Mode: 0o755},
	}
)

func buildMovable(t *testing.T) (archive string, p Package) {
	t.Helper()
	var b bytes.Buffer
	p, err := Build(&b, pilotHeader, movableFiles, loader)
	if err != nil {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "p.tar.gz")
	if err := os.WriteFile(archive, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive, p
}

// shortDir creates a folder with a short path, because the space in movable is small.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestUnpackRelocatesToItsFolder(t *testing.T) {
	t.Parallel()
	archive, p := buildMovable(t)
	if got, err := Inspect(t.Context(), archive); err != nil || got != p {
		t.Errorf("Inspect = %+v, %v, want %+v", got, err, p)
	}
	dir := filepath.Join(shortDir(t), "d")
	if err := Unpack(archive, p, dir); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(movable)
	clear(want[50:150])
	copy(want[50:150], dir+"/lib/loader")
	if got, err := os.ReadFile(filepath.Join(dir, "bin/program")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("program is %q, %v, want %q", got, err, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "bin/text")); err != nil || !bytes.Equal(got, movable) {
		t.Errorf("another file is %q, %v, want it as it was", got, err)
	}
	if _, err := Check(dir); err != nil {
		t.Errorf("Check = %v", err)
	}
	if err := Unpack(archive, p, dir); err != nil {
		t.Errorf("second Unpack = %v", err)
	}
}

func TestUnpackRefusesATooLongPath(t *testing.T) {
	t.Parallel()
	archive, p := buildMovable(t)
	parent := shortDir(t)
	room := 100 - len("/lib/loader") - len(parent) - 2 // for the name, without slash and zero
	if err := Unpack(archive, p, filepath.Join(parent, strings.Repeat("d", room))); err != nil {
		t.Errorf("Unpack where the path just fits = %v", err)
	}
	err := Unpack(archive, p, filepath.Join(parent, strings.Repeat("e", room+1)))
	if corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), "shorter path") || !strings.Contains(err.Error(), p.Name) {
		t.Errorf("Unpack where it does not = %v, want Unsatisfiable naming %s", err, p.Name)
	}
	assertEntries(t, parent, strings.Repeat("d", room))
}

func TestCheckFindsWrongRelocations(t *testing.T) {
	t.Parallel()
	overwrite := func(b []byte, offset int64) func(string) error {
		return func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "bin/program"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(b, offset)
			return errors.Join(err, f.Close())
		}
	}
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		want   string
	}{
		{"beside a place", overwrite([]byte("x"), 49), "sha256 is"},
		{"as in the archive", overwrite(Placeholder(100), 50), "which does not exist"},
		{"another file", overwrite([]byte("/dev/null\x00"+strings.Repeat("\x00", 90)), 50), "another file"},
		{"more after the path", overwrite([]byte("x"), 148), "no absolute path"},
		{"relative path", overwrite([]byte("l"), 50), "no absolute path"},
		{"no end", overwrite(bytes.Repeat([]byte("/"), 100), 50), "no absolute path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			archive, p := buildMovable(t)
			dir := filepath.Join(shortDir(t), "d")
			if err := errors.Join(Unpack(archive, p, dir), c.damage(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Check(dir); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check = %v, want Failed with %q", err, c.want)
			}
		})
	}
}

func TestCheckOfAMovedPackage(t *testing.T) {
	t.Parallel()
	archive, p := buildMovable(t)
	parent := shortDir(t)
	dir, moved := filepath.Join(parent, "d"), filepath.Join(parent, "m")
	if err := errors.Join(Unpack(archive, p, dir), os.Rename(dir, moved)); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(moved); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "unpacked for "+dir) {
		t.Errorf("Check = %v, want Failed naming %s", err, dir)
	}
	if err := os.Symlink(moved, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, moved} { // both lead to the same loader
		if _, err := Check(name); err != nil {
			t.Errorf("Check(%s) = %v", name, err)
		}
	}
}

func TestBuildRefusesRelocations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(r *Relocation)
		want   string
	}{
		{"unknown file", func(r *Relocation) { r.File = "bin/none" }, "not in the package"},
		{"file outside", func(r *Relocation) { r.File = "../bin/program" }, "not in the package"},
		{"not executable", func(r *Relocation) { r.File = "bin/text" }, "not a program"},
		{"before the file", func(r *Relocation) { r.Offset = -1 }, "outside"},
		{"after the file", func(r *Relocation) { r.Offset = 101 }, "outside"},
		{"far after the file", func(r *Relocation) { r.Offset = 1<<63 - 1 }, "outside"},
		{"negative length", func(r *Relocation) { r.Length = -100 }, "want 64 to 4096"},
		{"too long", func(r *Relocation) { r.Length = 1 << 62 }, "want 64 to 4096"},
		{"absolute text", func(r *Relocation) { r.Text = "/lib/loader" }, "which is not in the package"},
		{"text outside", func(r *Relocation) { r.Text = "../lib/loader" }, "which is not in the package"},
		{"no placeholder", func(r *Relocation) { r.Offset = 49 }, "placeholder"},
		{"part of one", func(r *Relocation) { r.Length = 99 }, "placeholder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := loader
			c.change(&r)
			_, err := Build(new(bytes.Buffer), pilotHeader, movableFiles, r)
			if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Build = %v, want Invalid with %q", err, c.want)
			}
		})
	}
	if _, err := Build(new(bytes.Buffer), pilotHeader, movableFiles, loader, loader); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("Build with the same relocation twice = %v, want a word of overlap", err)
	}
}

// A hostile archive was not created by Build.
func TestUnpackRefusesHostileRelocations(t *testing.T) {
	t.Parallel()
	with := func(path, mode, relocations string) string {
		m := manifestOf(path, mode)
		return strings.TrimSuffix(m, "}") + `,"relocations":[` + relocations + `]}`
	}
	place := func(offset, length int, text string) string {
		return fmt.Sprintf(`{"file":"a","offset":%d,"length":%d,"text":%q}`, offset, length, text)
	}
	long := strings.Replace(with("a", "0755", place(0, 64, "a")), `"size":1`, `"size":64`, 1)
	for _, c := range []struct {
		name, manifest, content, want string
	}{
		{"outside", with("a", "0755", place(0, 64, "a")), "x", "outside"},
		{"not executable", with("a", "0644", place(0, 64, "a")), "x", "not a program"},
		{"absolute", strings.Replace(long, `"text":"a"`, `"text":"/etc/passwd"`, 1), "x", "not in the package"},
		{"unknown field", strings.Replace(long, `"text"`, `"run":"a","text"`, 1), "x", "unknown field"},
		{"many", with("a", "0755", strings.Repeat(place(0, 64, "a")+",", maxRelocations)+place(0, 64, "a")), "x", "at most"},
		{"no placeholder", strings.Replace(long, sumOfX, hexSum(Placeholder(64)), 1), strings.Repeat("x", 64), "placeholder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := hostile(t, c.manifest, c.content, tar.Header{Name: "a", Typeflag: tar.TypeReg})
			archive := filepath.Join(t.TempDir(), "p.tar.gz")
			if err := os.WriteFile(archive, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			parent := t.TempDir()
			p := Package{Name: "p-1-x86_64-linux-static", Digest: "sha256:" + hexSum(raw)}
			err := Unpack(archive, p, filepath.Join(parent, "d"))
			if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p.Name) {
				t.Errorf("Unpack = %v, want Failed naming %s with %q", err, p.Name, c.want)
			}
			assertEntries(t, parent)
		})
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
