package htcondor

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

func TestDownloadsAreRecentForADay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := apt{dir: dir}
	if got := a.recent(); got != nil {
		t.Errorf("recent = %q before anything was downloaded", got)
	}
	debs := filepath.Join(dir, "debs")
	want := []string{filepath.Join(debs, "a.deb"), filepath.Join(debs, "b.deb")}
	list := filepath.Join(dir, listName)
	if err := os.Mkdir(debs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, deb := range want {
		if err := os.WriteFile(deb, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "another's") // another path to the same cache, gone when it is used
	if err := errors.Join(os.Symlink(dir, link), apt{dir: link}.remember([]string{
		filepath.Join(link, "debs", "a.deb"), filepath.Join(link, "debs", "b.deb")}), os.Remove(link)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, a.recent()); diff != "" {
		t.Errorf("recent (-want +got):\n%s", diff)
	}
	yesterday := time.Now().Add(-lifetime)
	if err := os.Chtimes(list, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if got := a.recent(); got != nil {
		t.Errorf("recent = %q a day later", got)
	}
	if err := errors.Join(os.Chtimes(list, time.Time{}, time.Now()), os.Remove(want[1])); err != nil {
		t.Fatal(err)
	}
	if got := a.recent(); got != nil {
		t.Errorf("recent = %q with one missing", got)
	}
}

// Otherwise a damaged download would block builds until the cache is cleared.
func TestDamagedDownloadIsNamedAndRemoved(t *testing.T) {
	t.Parallel()
	deb := filepath.Join(t.TempDir(), "condor_1_amd64.deb")
	if err := os.WriteFile(deb, []byte("!<arch>\nno archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unpackAll(ended, []string{deb}, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("unpackAll after the end = %v", err)
	}
	if err := unpackAll(t.Context(), []string{deb}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "condor_1_amd64.deb: dpkg-deb: ") {
		t.Errorf("unpackAll = %v, want it to name the package", err)
	}
	if _, err := os.Stat(deb); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged package is there still (%v)", err)
	}
}

// tarball creates an archive of empty files and links.
func tarball(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestExtractTakesWhatIsWantedAndStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	reg, link := byte(tar.TypeReg), byte(tar.TypeSymlink)
	err = extract(tarball(t,
		tar.Header{Name: "./usr/sbin/condor_master", Typeflag: reg, Mode: 0o4755},
		tar.Header{Name: "./usr/bin/python3", Typeflag: reg, Mode: 0o755},
		tar.Header{Name: "./usr/lib/x86_64-linux-gnu/libz.so.1", Typeflag: link, Linkname: "libz.so.1.3"},
		tar.Header{Name: "./usr/share/doc/condor", Typeflag: reg},
		tar.Header{Name: "../usr/lib/libevil.so", Typeflag: reg},
		tar.Header{Name: "/usr/lib/libevil.so", Typeflag: reg},
	), root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			got = append(got, strings.TrimPrefix(name, dir))
		}
		return err
	})
	want := []string{"/usr/lib/x86_64-linux-gnu/libz.so.1", "/usr/sbin/condor_master"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("extracted (-want +got): %v\n%s", err, diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "usr/sbin/condor_master")); err != nil || info.Mode() != 0o700 {
		t.Errorf("condor_master has mode %v, %v", info.Mode(), err)
	}
	// A link that leads out of the root must not be followed.
	err = extract(tarball(t,
		tar.Header{Name: "./usr/libexec/condor/out", Typeflag: link, Linkname: "/tmp"},
		tar.Header{Name: "./usr/lib/condor", Typeflag: link, Linkname: t.TempDir()},
	), root)
	if err == nil {
		err = extract(tarball(t, tar.Header{Name: "./usr/libexec/condor/out", Typeflag: reg}), root)
	}
	if err == nil {
		t.Error("a file was written through a link")
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	version := []byte("\x00$CondorVersion: 23.9.6 2026 $")
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		kind    corral.Kind
		says    string
		without os.FileMode // permissions that no file may have
	}{
		{"nothing", nil, corral.NotFound, "no program sbin/condor_master", 0},
		{"no condor_version", map[string][]byte{"sbin/condor_master": host(t)}, corral.NotFound, "no program bin/condor_version", 0},
		{"not executable", map[string][]byte{"sbin/condor_master": host(t), "bin/condor_version": version}, corral.NotFound, "no program sbin/condor_master", 0o111},
		{"without a version", map[string][]byte{"sbin/condor_master": host(t), "bin/condor_version": []byte("hello")}, corral.Invalid, "names no version", 0},
		{"a script", map[string][]byte{"sbin/condor_master": []byte("#!/bin/sh\n"), "bin/condor_version": version}, corral.Invalid, "sbin/condor_master: ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range c.files {
				file := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b, 0o755&^c.without)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Find(dir); corral.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Find = %v, want %s with %q", err, c.kind, c.says)
			}
		})
	}
}
