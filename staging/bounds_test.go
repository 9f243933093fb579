package staging

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// holes creates a sparse file of the given length.
func holes(t *testing.T, name string, size int64) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
		t.Fatal(err)
	}
	return name
}

func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A file that is not a package is rejected before any of it is copied.
func TestAddCopiesPackagesOnly(t *testing.T) {
	t.Parallel()
	m := Mirror{Dir: filepath.Join(t.TempDir(), "mirror")}
	for name, says := range map[string]string{
		"/dev/zero":                     "it is a device, not a regular file",
		pipe(t):                         "it is a named pipe, not a regular file",
		t.TempDir():                     "it is a directory, not a regular file",
		holes(t, "long", 1<<40):         "bad package: longer than 2 GiB",
		holes(t, "holes", 1<<30):        "bad package: not a gzip archive",
		filepath.Join(t.TempDir(), "n"): "no such file",
	} {
		_, err := m.Add(t.Context(), name)
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), name+": "+says) {
			t.Errorf("Add = %v (%s), want Invalid and %s: %s", err, corral.KindOf(err), name, says)
		}
	}
	if _, err := os.Stat(m.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a mirror: %v", err)
	}
}

// Copying an archive stops when its context has ended.
func TestAddEnds(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	name, err := m.Path(p)
	if err != nil {
		t.Fatal(err)
	}
	other := Mirror{Dir: filepath.Join(t.TempDir(), "other")}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Add(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("Add for nobody = %v", err)
	}
	assertEntries(t, other.Dir)
}

func TestSweepRemovesWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	dir, err := m.Room()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "archive"), nil, 0o600)
	}
	if err := errors.Join(err, os.WriteFile(filepath.Join(m.Dir, ".add-1"), nil, 0o600), m.Sweep(), m.Sweep()); err != nil {
		t.Fatal(err)
	}
	name, err := FileName(p)
	if err != nil {
		t.Fatal(err)
	}
	assertEntries(t, m.Dir, name)
	if err := (Mirror{Dir: filepath.Join(t.TempDir(), "none")}).Sweep(); err != nil {
		t.Errorf("Sweep of a mirror that nobody has made = %v", err)
	}
}

// A mirror on this machine may have anything in place of a package, a signature or the index.
func TestFetchTakesFilesOnly(t *testing.T) {
	t.Parallel()
	f := newFetcher(t)
	for _, name := range []string{pipe(t), "/dev/zero"} {
		src := Source{Package: packages.Package{Name: "p", Digest: "sha256:" + strings.Repeat("0", 64), SizeBytes: 1 << 30}, URLs: []string{"file://" + name}}
		_, err := f.Fetch(t.Context(), src, filepath.Join(t.TempDir(), "dst"))
		if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Fetch of %s = %v", name, err)
		}
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "x.tar.gz")
	err := errors.Join(syscall.Mkfifo(archive+packages.SignatureSuffix, 0o600), os.Symlink("/dev/zero", filepath.Join(dir, IndexName)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Signature(t.Context(), "file://"+archive); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "it is a named pipe") {
		t.Errorf("Signature = %v", err)
	}
	if _, err := f.Index(t.Context(), "file://"+dir); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "it is a device") {
		t.Errorf("Index = %v", err)
	}
}
