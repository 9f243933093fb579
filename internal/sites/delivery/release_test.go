package delivery

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// poolFiles look like an HTCondor unless it is started.
func poolFiles(version string) fstest.MapFS {
	return fstest.MapFS{
		"sbin/condor_master": {Data: append([]byte("a master"), packages.Placeholder(512)...), Mode: 0o755},
		"bin/condor_version": {Data: []byte("\x00$CondorVersion: " + version + " 2026-07-12 $\x00"), Mode: 0o755},
		"lib/loader":         {Data: []byte("a loader"), Mode: 0o755},
	}
}

// poolPackage adds a package for pools to the catalog.
func (w *world) poolPackage(version, arch, libc string) corral.Package {
	w.t.Helper()
	h := packages.Header{What: htcondor.Pool, Version: version, Platform: corral.Platform{OS: "linux", Arch: arch, Libc: libc}}
	archive := filepath.Join(w.t.TempDir(), "pool.tar.gz")
	var b bytes.Buffer
	p, err := packages.Build(&b, h, poolFiles(version), packages.Relocation{File: "sbin/condor_master", Offset: 8, Length: 512, Text: "lib/loader"})
	if err == nil {
		err = os.WriteFile(archive, b.Bytes(), 0o600)
	}
	if err == nil {
		_, err = w.depot.mirror.Add(w.t.Context(), archive)
	}
	s := w.depot.signer.Sign(p)
	if err == nil {
		err = w.depot.vouch(s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return w.catalogued(s)
}

// whole checks that dir is an unpacked package for pools.
func whole(t *testing.T, dir, version string) {
	t.Helper()
	h, err := packages.Check(dir)
	if err != nil || h.What != htcondor.Pool || h.Version != version {
		t.Errorf("in %s is %+v, %v, want HTCondor %s", dir, h, err, version)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "sbin/condor_master")); err != nil || !bytes.Contains(b, []byte(dir+"/lib/loader\x00")) {
		t.Errorf("the master in %s does not name its loader there (%v)", dir, err)
	}
}

func TestReleaseIsTheNewestThatRunsHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.catalog
	w.poolPackage("23.0.1", htcondor.Arch(), packages.Static)
	w.poolPackage("23.10.1", htcondor.Arch(), packages.Static)
	w.poolPackage("24.0.1", "riscv64", packages.Static)
	w.poolPackage("25.0.1", htcondor.Arch(), "glibc2.99")
	w.workerPackage("26.0.1", htcondor.Arch())
	newest, err := catalog.Newest(t.Context())
	if err != nil || !strings.Contains(newest, "23.10.1") {
		t.Errorf("Newest = %q, %v, want the name of a package with 23.10.1", newest, err)
	}
	dir, version, err := catalog.Release(t.Context(), "")
	if err != nil || version != "23.10.1" {
		t.Fatalf("Release = %s, %s, %v, want 23.10.1", dir, version, err)
	}
	whole(t, dir, version)
	if again, _, err := catalog.Release(t.Context(), ""); err != nil || again != dir {
		t.Errorf("second Release = %s, %v, want %s", again, err, dir)
	}
	name := "htcondor-pool-23.0.1-" + htcondor.Arch() + "-linux-static"
	old, version, err := catalog.Release(t.Context(), name)
	if err != nil || version != "23.0.1" || old == dir {
		t.Errorf("Release(%s) = %s, %s, %v", name, old, version, err)
	}
	whole(t, old, version)
}

func TestReleaseIsUnpackedOnceAndAgainIfDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.catalog
	p := w.poolPackage("22.0.1", htcondor.Arch(), packages.Static)
	var all sync.WaitGroup
	dirs := make([]string, 6)
	for i := range dirs {
		all.Go(func() {
			var err error
			if dirs[i], _, err = catalog.Release(t.Context(), p.Name); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if one := slices.Compact(slices.Clone(dirs)); len(one) != 1 {
		t.Errorf("Release = %v, want the same folder each time", one)
	}
	whole(t, dirs[0], "22.0.1")
	stray := filepath.Join(dirs[0], "stray") // not damage
	if err := errors.Join(os.WriteFile(stray, nil, 0o600), os.WriteFile(filepath.Join(dirs[0], "lib/loader"), []byte("a looder"), 0o600)); err != nil {
		t.Fatal(err)
	}
	again, _, err := catalog.Release(t.Context(), p.Name)
	if err != nil || again != dirs[0] {
		t.Fatalf("Release = %s, %v, want %s", again, err, dirs[0])
	}
	whole(t, again, "22.0.1")
	if _, err := os.Stat(stray); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged release was mended (%v), want it replaced", err)
	}
	// Other tests may have created others beside it.
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(again), ".damaged-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func TestReleaseInAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.catalog
	dir := filepath.Join(t.TempDir(), "htcondor")
	if err := os.CopyFS(dir, poolFiles("10.4.2")); err != nil {
		t.Fatal(err)
	}
	if got, version, err := catalog.Release(t.Context(), dir+"/"); err != nil || got != dir || version != "10.4.2" {
		t.Errorf("Release = %s, %s, %v, want %s and 10.4.2", got, version, err, dir)
	}
	if err := os.Remove(filepath.Join(dir, "sbin/condor_master")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := catalog.Release(t.Context(), dir); corral.KindOf(err) != corral.NotFound || !strings.Contains(err.Error(), "no program sbin/condor_master") {
		t.Errorf("Release of a folder without a master = %v, want NotFound naming it", err)
	}
}

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.catalog
	worker := w.workerPackage("21.0.1", htcondor.Arch())
	foreign := w.poolPackage("21.0.1", "riscv64", packages.Static)
	musl := w.poolPackage("21.0.2", htcondor.Arch(), "musl")
	unsigned := w.poolPackage("21.0.3", htcondor.Arch(), packages.Static)
	unsigned.Signature = "AAAA"
	w.write(func(tx *store.Tx) error {
		_, err := tx.DeletePackage(unsigned.ID, "to be put back with another signature")
		if err == nil {
			_, err = tx.CreatePackage(unsigned)
		}
		return err
	})
	for _, c := range []struct {
		name, ref string
		kind      corral.Kind
		says      string
	}{
		{"no such package", "htcondor-pool-1-x86_64-linux-static", corral.NotFound, "neither an absolute path nor the name"},
		{"a worker's package", worker.Name, corral.Invalid, "a pool needs one of htcondor-pool"},
		{"another architecture", foreign.Name, corral.Unsatisfiable, "is for linux/riscv64"},
		{"another libc", musl.Name, corral.Unsatisfiable, "needs musl"},
		{"a bad signature", unsigned.Name, corral.Forbidden, unsigned.Name},
		{"no such folder", filepath.Join(t.TempDir(), "none"), corral.NotFound, "it has no HTCondor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _, err := catalog.Release(t.Context(), c.ref)
			if corral.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Release = %s, %v, want %s with %q", dir, err, c.kind, c.says)
			}
		})
	}
}

// Without a package, the HTCondor installed on this machine is used.
func TestReleaseThatIsInstalled(t *testing.T) {
	w := newWorld(t)
	catalog := w.catalog
	dir, path := filepath.Join(t.TempDir(), "htcondor"), t.TempDir()
	t.Setenv("PATH", path)
	_, _, err := catalog.Release(t.Context(), "")
	if corral.KindOf(err) != corral.Unsatisfiable || err.Error() != "HTCondor was not found here: `corral package build --from-debian trixie` makes a package" {
		t.Errorf("Release without any = %v, want Unsatisfiable with what to do", err)
	}
	if err := errors.Join(os.CopyFS(dir, poolFiles("10.4.2")), os.Symlink(filepath.Join(dir, "sbin/condor_master"), filepath.Join(path, "condor_master"))); err != nil {
		t.Fatal(err)
	}
	if got, version, err := catalog.Release(t.Context(), ""); err != nil || got != dir || version != "10.4.2" {
		t.Errorf("Release = %s, %s, %v, want %s and 10.4.2", got, version, err, dir)
	}
}

// Prune removes releases that no cluster uses, and the remains of a killed unpacking.
func TestPruneReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.catalog
	if err := catalog.Prune(nil); err != nil {
		t.Errorf("Prune() of nothing: %v", err)
	}
	dir := catalog.releasesDir()
	for _, name := range []string{"old/sbin", "new/sbin", ".damaged-1/release"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := catalog.Prune([]string{filepath.Join(dir, "new"), "/usr"}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "new" || !exists(filepath.Join(dir, "new", "sbin")) {
		t.Errorf("left are %v (%v), want new", left, err)
	}
}

func (w *world) catalogued(s packages.Signed) corral.Package {
	w.t.Helper()
	p := described(s)
	p.Owner = "local"
	w.write(func(tx *store.Tx) (err error) { p, err = tx.CreatePackage(p); return err })
	return p
}

// workerPackage adds a worker package of HTCondor to the catalog. It contains nothing executable: what is staged, and
// when, does not depend on that.
func (w *world) workerPackage(version, arch string) corral.Package {
	w.t.Helper()
	h := packages.Header{What: htcondor.Worker, Version: version, Platform: corral.Platform{OS: "linux", Arch: arch, Libc: packages.Static}}
	p, err := w.depot.mirror.Build(h, fstest.MapFS{"sbin/condor_master": {Data: []byte("a master"), Mode: 0o755}})
	if err != nil {
		w.t.Fatal(err)
	}
	s := w.depot.signer.Sign(p)
	if err := w.depot.vouch(s); err != nil {
		w.t.Fatal(err)
	}
	return w.catalogued(s)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
