package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

var pilotHeader = Header{What: "corral-pilot", Version: "0.1.0",
	Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: Static}}

var pilotFiles = fstest.MapFS{
	"bin/pilot":     {Data: []byte("#!/bin/sh\nexit 0\n"), Mode: 0o755},
	"share/LICENSE": {Data: []byte("as is\n"), Mode: 0o600},
	"share/empty":   {Mode: 0o644},
}

// build writes a package of files to a new file.
func build(t *testing.T, h Header, files fs.FS) (archive string, p Package) {
	t.Helper()
	var b bytes.Buffer
	p, err := Build(&b, h, files)
	if err != nil {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "p.tar.gz")
	if err := os.WriteFile(archive, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive, p
}

func TestBuildIsDeterministicAndNamed(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	p, err := Build(&a, pilotHeader, pilotFiles)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Build(&b, pilotHeader, pilotFiles)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || p != q {
		t.Errorf("two builds of the same files differ: %+v, %+v", p, q)
	}
	sum := sha256.Sum256(a.Bytes())
	want := Package{Name: "corral-pilot-0.1.0-x86_64-linux-static", What: "corral-pilot", Version: "0.1.0",
		Platform: pilotHeader.Platform, Digest: "sha256:" + hex.EncodeToString(sum[:]), SizeBytes: int64(a.Len())}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("Build (-want +got):\n%s", diff)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "files")
	if err := errors.Join(os.Mkdir(link, 0o700), os.Symlink("/etc/passwd", filepath.Join(link, "a"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		h     Header
		files fs.FS
		want  string
	}{
		{"link", pilotHeader, os.DirFS(link), "not a regular file"},
		{"nothing", pilotHeader, fstest.MapFS{}, "0 files"},
		{"own manifest", pilotHeader, fstest.MapFS{ManifestName: {}}, "listed twice"},
		{"name", Header{What: "Pilot", Version: "1", Platform: pilotHeader.Platform}, pilotFiles, "name"},
		{"version", Header{What: "pilot", Version: "../1", Platform: pilotHeader.Platform}, pilotFiles, "version"},
		{"libc", Header{What: "pilot", Version: "1", Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "none"}}, pilotFiles, "libc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Build(new(bytes.Buffer), c.h, c.files)
			if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Build = %v, want Invalid with %q", err, c.want)
			}
		})
	}
}

func TestUnpackRestoresBuiltFiles(t *testing.T) {
	t.Parallel()
	archive, p := build(t, pilotHeader, pilotFiles)
	dir := filepath.Join(t.TempDir(), "d")
	if err := Unpack(archive, p, dir); err != nil {
		t.Fatal(err)
	}
	for name, f := range pilotFiles {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, f.Data) {
			t.Errorf("%s = %q, %v, want %q", name, got, err, f.Data)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "bin/pilot")); err != nil || info.Mode() != 0o755 {
		t.Errorf("bin/pilot: %v, %v, want mode 0755", info.Mode(), err)
	}
	if h, err := Check(dir); err != nil || !cmp.Equal(h, pilotHeader) {
		t.Errorf("Check = %v, %v, want %v", h, err, pilotHeader)
	}
	if err := Unpack(archive, p, dir); err != nil {
		t.Errorf("second Unpack = %v, want nil", err)
	}
}

func TestConcurrentUnpack(t *testing.T) {
	t.Parallel()
	archive, p := build(t, pilotHeader, pilotFiles)
	parent := t.TempDir()
	dir := filepath.Join(parent, "d")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := Unpack(archive, p, dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := Check(dir); err != nil {
		t.Error(err)
	}
	assertEntries(t, parent, "d")
}

func TestUnpackRefusesACorruptPackageByName(t *testing.T) {
	t.Parallel()
	archive, p := build(t, pilotHeader, pilotFiles)
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(archive, b, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	err = Unpack(archive, p, filepath.Join(parent, "d"))
	if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), p.Name) {
		t.Errorf("Unpack = %v, want Failed naming %s", err, p.Name)
	}
	assertEntries(t, parent)
	if err := Verify(t.Context(), archive, p); corral.KindOf(err) != corral.Failed {
		t.Errorf("Verify = %v, want Failed", err)
	}
}

func TestUnpackRefusesAnotherPackageInItsPlace(t *testing.T) {
	t.Parallel()
	archive, p := build(t, pilotHeader, pilotFiles)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(archive, p, dir); corral.KindOf(err) != corral.Conflict {
		t.Errorf("Unpack = %v, want Conflict", err)
	}
	p.Name = "corral-pilot-0.2.0-x86_64-linux-static"
	if err := Unpack(archive, p, filepath.Join(t.TempDir(), "d")); corral.KindOf(err) != corral.Failed {
		t.Errorf("Unpack under another name = %v, want Failed", err)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(dir string) error{
		"file gone": func(d string) error { return os.Remove(filepath.Join(d, "share/empty")) },
		"byte changed": func(d string) error {
			return os.WriteFile(filepath.Join(d, "bin/pilot"), []byte("#!/bin/sh\nexit 1\n"), 0)
		},
		"mode changed":  func(d string) error { return os.Chmod(filepath.Join(d, "bin/pilot"), 0o644) },
		"manifest gone": func(d string) error { return os.Remove(filepath.Join(d, ManifestName)) },
		"a link instead": func(d string) error {
			file := filepath.Join(d, "share/LICENSE")
			return errors.Join(os.Rename(file, file+"2"), os.Symlink("/etc/passwd", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive, p := build(t, pilotHeader, pilotFiles)
			dir := filepath.Join(t.TempDir(), "d")
			if err := errors.Join(Unpack(archive, p, dir), damage(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Check(dir); corral.KindOf(err) != corral.Failed {
				t.Errorf("Check = %v, want Failed", err)
			}
		})
	}
	if _, err := Check(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Check of nothing = %v, want fs.ErrNotExist", err)
	}
}

// hostile creates an archive by hand: a manifest that lists one good file, followed by entries with content.
func hostile(t *testing.T, manifest, content string, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	add := func(h tar.Header, content string) {
		h.Size = int64(len(content))
		if h.Typeflag != tar.TypeReg {
			h.Size, content = 0, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: ManifestName, Typeflag: tar.TypeReg, Mode: 0o644}, manifest)
	for _, h := range entries {
		add(h, content)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const sumOfX = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

// manifestOf returns a manifest with one file of one byte, x.
func manifestOf(path, mode string) string {
	return `{"name":"p","version":"1","os":"linux","arch":"x86_64","libc":"static","files":[{"path":"` + path +
		`","mode":"` + mode + `","size":1,"sha256":"` + sumOfX + `"}]}`
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	good, reg := manifestOf("a", "0644"), byte(tar.TypeReg)
	for _, c := range []struct {
		name    string
		archive []byte
		want    string // "": it is valid
	}{
		{"fine", hostile(t, good, "x", tar.Header{Name: "a", Typeflag: reg}), ""},
		{"empty", nil, "not a gzip archive"},
		{"no manifest", hostile(t, "junk", "x", tar.Header{Name: "a", Typeflag: reg}), "decode"},
		{"unknown field", hostile(t, strings.Replace(good, `"name"`, `"setuid":1,"name"`, 1), "x"), "unknown field"},
		{"missing", hostile(t, good, "x"), "missing"},
		{"unlisted", hostile(t, good, "x", tar.Header{Name: "a", Typeflag: reg}, tar.Header{Name: "b", Typeflag: reg}), "not in the manifest"},
		{"twice", hostile(t, good, "x", tar.Header{Name: "a", Typeflag: reg}, tar.Header{Name: "a", Typeflag: reg}), "not in the manifest"},
		{"symlink", hostile(t, good, "x", tar.Header{Name: "a", Linkname: "/etc", Typeflag: tar.TypeSymlink}), "in its place"},
		{"hard link", hostile(t, good, "x", tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}), "in its place"},
		{"device", hostile(t, good, "x", tar.Header{Name: "a", Typeflag: tar.TypeChar}), "in its place"},
		{"dot dot", hostile(t, manifestOf("../a", "0644"), "x", tar.Header{Name: "../a", Typeflag: reg}), "not a plain path"},
		{"absolute", hostile(t, manifestOf("/a", "0644"), "x", tar.Header{Name: "/a", Typeflag: reg}), "not a plain path"},
		{"setuid", hostile(t, manifestOf("a", "4755"), "x", tar.Header{Name: "a", Typeflag: reg}), "neither 0644 nor 0755"},
		{"wrong byte", hostile(t, strings.Replace(good, sumOfX, strings.Repeat("0", 64), 1), "x", tar.Header{Name: "a", Typeflag: reg}), "sha256 is"},
		{"wrong size", hostile(t, strings.Replace(good, `"size":1`, `"size":2`, 1), "x", tar.Header{Name: "a", Typeflag: reg}), "in its place"},
		{"too much", hostile(t, strings.Replace(good, `"size":1`, `"size":1000000000000`, 1), "x"), "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			archive := filepath.Join(t.TempDir(), "p.tar.gz")
			if err := os.WriteFile(archive, c.archive, 0o600); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(c.archive)
			p := Package{Name: "p-1-x86_64-linux-static", Digest: "sha256:" + hex.EncodeToString(sum[:])}
			err := Unpack(archive, p, filepath.Join(parent, "d"))
			if c.want == "" && err == nil {
				return
			}
			if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p.Name) {
				t.Errorf("Unpack = %v, want Failed naming %s with %q", err, p.Name, c.want)
			}
			assertEntries(t, parent)
		})
	}
}

// FuzzReadArchive mutates the inner tar file, because the gzip checksum would reject nearly every mutation.
func FuzzReadArchive(f *testing.F) {
	add := func(files fs.FS, relocations ...Relocation) {
		var b bytes.Buffer
		if _, err := Build(&b, pilotHeader, files, relocations...); err != nil {
			f.Fatal(err)
		}
		z, err := gzip.NewReader(&b)
		if err != nil {
			f.Fatal(err)
		}
		tarball, err := io.ReadAll(z)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(tarball)
	}
	add(pilotFiles)
	add(movableFiles, loader)
	f.Add([]byte("junk"))
	f.Fuzz(func(t *testing.T, tarball []byte) {
		var archive bytes.Buffer
		z := gzip.NewWriter(&archive)
		if _, err := z.Write(tarball); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := extract(&archive, Package{Name: pilotHeader.Name()}, dir, dir); err != nil {
			return
		}
		if _, err := Check(dir); err != nil {
			t.Errorf("an archive was unpacked that Check refuses: %v", err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestOf("a", "0644")))
	f.Add([]byte(manifestOf("../a", "4755")))
	f.Add([]byte(`{"files":null}`))
	f.Add([]byte(strings.Replace(strings.TrimSuffix(manifestOf("a", "0755"), "}"), `"size":1`, `"size":99`, 1) +
		`,"relocations":[{"file":"a","offset":0,"length":64,"text":"a"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parseManifest(raw)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Path) {
				t.Errorf("path %q was accepted", file.Path)
			}
		}
		for _, r := range m.Relocations {
			i := slices.IndexFunc(m.Files, func(f file) bool { return f.Path == r.File })
			if i < 0 || r.Offset < 0 || r.Length <= 0 || r.Length > m.Files[i].Size-r.Offset || !filepath.IsLocal(r.Text) {
				t.Errorf("relocation %+v was accepted", r)
			}
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		n, err := parseManifest(again)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := n.encode(); err != nil || !bytes.Equal(again, back) { // an empty list is equivalent to none
			t.Errorf("manifest %s came back as %s, %v", again, back, err)
		}
	})
}

func TestChoose(t *testing.T) {
	t.Parallel()
	pkg := func(version, arch, libc string) Package {
		h := Header{What: "p", Version: version, Platform: corral.Platform{OS: "linux", Arch: arch, Libc: libc}}
		return h.describe("sha256:"+version+libc, 1)
	}
	old, static, arm := pkg("0.9.0", "x86_64", Static), pkg("0.10.0", "x86_64", Static), pkg("0.10.0", "aarch64", Static)
	g28, g36, musl := pkg("0.10.0", "x86_64", "glibc2.28"), pkg("0.10.0", "x86_64", "glibc2.36"), pkg("0.10.0", "x86_64", "musl")
	for _, c := range []struct {
		name, arch, libc string
		available        []Package
		want             Package
		err              string
	}{
		{"newest", "x86_64", "glibc2.36", []Package{old, static, arm}, static, ""},
		{"static on musl", "x86_64", "musl", []Package{g36, static}, static, ""},
		{"static without libc", "x86_64", "none", []Package{g36, static}, static, ""},
		{"own libc first", "x86_64", "musl", []Package{musl, static}, musl, ""},
		{"closest glibc", "x86_64", "glibc2.40", []Package{g28, g36, static}, g36, ""},
		{"older glibc", "x86_64", "glibc2.31", []Package{g36, g28}, g28, ""},
		{"version as numbers", "x86_64", "glibc2.9", []Package{g28}, Package{}, "p-0.10.0-x86_64-linux-glibc2.28 needs glibc 2.28 or newer"},
		{"glibc on musl", "x86_64", "musl", []Package{g28}, Package{}, "no package for linux/x86_64 with musl: p-0.10.0-x86_64-linux-glibc2.28 needs glibc 2.28 or newer"},
		{"own libc before a foreign one", "x86_64", "musl", []Package{g28, static, old}, static, ""},
		{"glibc older than all", "x86_64", "glibc2.17", []Package{g28, g36}, Package{}, "with glibc2.17: p-0.10.0-x86_64-linux-glibc2.28 needs glibc 2.28 or newer; p-0.10.0-x86_64-linux-glibc2.36 needs"},
		{"arch", "x86_64", "glibc2.36", []Package{arm}, Package{}, "p-0.10.0-aarch64-linux-static is for linux/aarch64"},
		{"nothing", "x86_64", "", nil, Package{}, "no package for linux/x86_64 with no known libc: there are no packages at all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Choose(corral.Platform{OS: "linux", Arch: c.arch, Libc: c.libc}, c.available)
			if c.err == "" {
				if err != nil || got != c.want {
					t.Errorf("Choose = %v, %v, want %v", got, err, c.want)
				}
			} else if corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), c.err) {
				t.Errorf("Choose = %v, want Unsatisfiable with %q", err, c.err)
			}
		})
	}
}

func TestInspectAndPeekDescribe(t *testing.T) {
	t.Parallel()
	archive, p := build(t, pilotHeader, pilotFiles)
	if got, err := Inspect(t.Context(), archive); err != nil || got != p {
		t.Errorf("Inspect = %+v, %v, want %+v", got, err, p)
	}
	if got, err := Peek(archive, p.Digest); err != nil || got != p {
		t.Errorf("Peek = %+v, %v, want %+v", got, err, p)
	}
	if err := Verify(t.Context(), archive, p); err != nil {
		t.Errorf("Verify = %v, want nil", err)
	}
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), junk); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), junk) {
		t.Errorf("Inspect(junk) = %v, want Invalid naming it", err)
	}
}

func TestHexOf(t *testing.T) {
	t.Parallel()
	for digest, ok := range map[string]bool{
		"sha256:" + sumOfX:                  true,
		sumOfX:                              false,
		"sha256:" + strings.ToUpper(sumOfX): false,
		"sha256:../../x":                    false,
		"md5:" + sumOfX:                     false,
	} {
		if _, err := HexOf(digest); (err == nil) != ok {
			t.Errorf("HexOf(%q) = %v, want ok %v", digest, err, ok)
		}
	}
}

// assertEntries checks the content of a directory.
func assertEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s holds (-want +got):\n%s", dir, diff)
	}
}

func TestUnpackRefusesMissingPrograms(t *testing.T) {
	t.Parallel()
	needy := pilotHeader
	needy.Requires = []string{"sh", "no-such-program"}
	archive, p := build(t, needy, pilotFiles)
	parent := t.TempDir()
	err := Unpack(archive, p, filepath.Join(parent, "d"))
	if corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), p.Name+": it needs no-such-program,") {
		t.Errorf("Unpack = %v, want Unsatisfiable naming the package and the program", err)
	}
	assertEntries(t, parent)
	needy.Requires = []string{"a/b"}
	if _, err := Build(new(bytes.Buffer), needy, pilotFiles); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Build with a path for a program = %v, want Invalid", err)
	}
}

func TestFilesThatAreNotArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, p := build(t, pilotHeader, pilotFiles)
	junk, huge := filepath.Join(dir, "junk"), filepath.Join(dir, "huge")
	if err := errors.Join(os.WriteFile(junk, []byte("junk"), 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, MaxBytes+1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		junk: "not a gzip archive", huge: "longer than 2 GiB", dir: "a directory", filepath.Join(dir, "none"): "no such file",
	} {
		for does, peek := range map[string]func() error{
			"Peek":    func() error { _, err := Peek(name, p.Digest); return err },
			"Inspect": func() error { _, err := Inspect(t.Context(), name); return err },
		} {
			if err := peek(); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s(%s) = %v, want Invalid with %q", does, name, err, want)
			}
		}
	}
	if err := Verify(t.Context(), junk, p); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "corrupt: its 4 bytes") {
		t.Errorf("Verify(junk) = %v, want Failed", err)
	}
	if err := Verify(t.Context(), filepath.Join(dir, "none"), p); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), p.Name) {
		t.Errorf("Verify of nothing = %v, want Failed naming the package", err)
	}
	p.Digest = "md5:1"
	if err := Verify(t.Context(), junk, p); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Verify by a digest of another kind = %v, want Invalid", err)
	}
}

// A growing file system has a longer file each time that it is opened.
type growing struct {
	fstest.MapFS
	opened int
}

func (g *growing) Open(name string) (fs.File, error) {
	if name != "log" {
		return g.MapFS.Open(name)
	}
	g.opened++
	return fstest.MapFS{"log": {Data: bytes.Repeat([]byte("x"), g.opened)}}.Open(name)
}

func TestBuildRefusesFilesThatChange(t *testing.T) {
	t.Parallel()
	files := &growing{MapFS: fstest.MapFS{"log": {Data: []byte("x")}}}
	if _, err := Build(io.Discard, pilotHeader, files); err == nil || !strings.Contains(err.Error(), `file "log"`) {
		t.Errorf("Build of a file that grows meanwhile = %v, want an error that names it", err)
	}
}

func TestChooseExplainsRequirements(t *testing.T) {
	t.Parallel()
	musl := Package{Name: "p-musl", Version: "1", Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "musl"}}
	_, err := Choose(corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}, []Package{musl})
	if corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), "p-musl needs musl") {
		t.Errorf("Choose = %v, want Unsatisfiable and why", err)
	}
}
