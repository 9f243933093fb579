package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/internal/xdg"
	packaging "github.com/corral-pilot/corral/packages/htcondor"
)

// demoSuite is the newest stable Debian that has HTCondor.
const demoSuite = "trixie"

// A condorSource is where a demo's HTCondor comes from: a folder, or Debian's packages if that is empty.
type condorSource struct{ installed string }

// put makes the packages as files of dir. Those of Debian's are made once by each build of this program, and
// kept with what can be downloaded again.
func (s condorSource) put(ctx context.Context, dir string, say func(string)) error {
	if s.installed != "" {
		from, err := filepath.Abs(s.installed)
		if err != nil {
			return fmt.Errorf("finding %s: %w", s.installed, err)
		}
		found, err := packaging.Find(from)
		if err != nil {
			return err
		}
		return packBoth(ctx, found, dir, say)
	}
	layout, err := xdg.Find()
	if err != nil {
		return err
	}
	self, err := digestOfSelf()
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	kept := filepath.Join(layout.Downloads(), "packages", demoSuite+"-"+self)
	if _, err := os.Stat(kept); err != nil {
		debian := packaging.Debian{Suite: demoSuite, Cache: filepath.Join(layout.Downloads(), "debian"), Progress: say}
		if err := keepPackages(ctx, debian, kept); err != nil {
			return err
		}
	}
	return copyFiles(kept, dir)
}

// keepPackages makes Debian's packages the files of kept, whole or not at all, in the place of other builds'.
func keepPackages(ctx context.Context, d packaging.Debian, kept string) error {
	parent := filepath.Dir(kept)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making a folder for packages: %w", err)
	}
	work, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return fmt.Errorf("making a folder for packages: %w", err)
	}
	defer os.RemoveAll(work)
	root, made := filepath.Join(work, "root"), filepath.Join(work, "made")
	for _, dir := range []string{root, made} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("making a folder for packages: %w", err)
		}
	}
	from, err := d.Unpack(ctx, root)
	if err != nil {
		return err
	}
	if err := packBoth(ctx, from, made, d.Progress); err != nil {
		return err
	}
	others, _ := filepath.Glob(filepath.Join(parent, demoSuite+"-*"))
	for _, other := range others {
		_ = os.RemoveAll(other) // it only takes room
	}
	if err := os.Rename(made, kept); err != nil {
		return fmt.Errorf("keeping packages: %w", err)
	}
	return nil
}

// packBoth makes the two packages of an HTCondor as files of dir.
func packBoth(ctx context.Context, from packaging.Installation, dir string, say func(string)) error {
	for _, what := range []string{packaging.Worker, packaging.Pool} {
		say(fmt.Sprintf("packing %s of HTCondor %s", what, from.Version))
		if _, err := packInto(ctx, from, what, dir); err != nil {
			return err
		}
	}
	return nil
}

// copyFiles copies the files of a folder, for everybody to read.
func copyFiles(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := copyFile(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return fmt.Errorf("copying a package: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	return out.Close()
}

// digestOfSelf tells builds of this program apart.
func digestOfSelf() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
