package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/packages"
)

// cacheDir is the folder below a site's root that holds its packages.
const cacheDir = "packages"

// Dir returns the directory of an installed package below a site's root. The error is Invalid if the digest is
// malformed.
func Dir(root string, p packages.Package) (string, error) {
	digits, err := packages.HexOf(p.Digest)
	return filepath.Join(root, cacheDir, digits), err
}

// Incoming returns the path for an archive that does not come from a mirror: corrald pushes it there, and its file URL
// is the Source of Install, which removes it.
func Incoming(root string, p packages.Package) (string, error) {
	dir, err := Dir(root, p)
	return dir + incomingSuffix, err
}

// Install makes sure that the package of src is unpacked below root, and returns its directory. An existing, complete
// package is used without a transfer; a damaged one is replaced. If several Installs run concurrently, on any machines
// of the site, one downloads and the others wait for it. An error has the kind of Fetch or packages.Unpack, and leaves
// nothing of the package.
func (f *Fetcher) Install(ctx context.Context, root string, src Source) (dir string, tries []Try, err error) {
	dir, err = Dir(root, src.Package)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", nil, fmt.Errorf("install package %s: %w", src.Package.Name, err)
	}
	unlock, err := lock(ctx, dir+lockSuffix)
	if err != nil {
		return "", nil, fmt.Errorf("install package %s: %w", src.Package.Name, err)
	}
	defer unlock()
	defer os.Remove(dir + incomingSuffix) // the pushed archive is needed only once
	// Checked under the lock, because another job may have installed it during the wait.
	ready, err := usable(dir, src.Package)
	if err == nil && !ready {
		tries, err = f.download(ctx, dir, src)
	}
	if err != nil {
		return "", tries, err
	}
	release, err := Use(dir) // records the time of this use, by which Prune orders packages
	if err != nil {
		return "", tries, err
	}
	release()
	return dir, tries, nil
}

// download fetches the package and unpacks it as dir. The archive is not kept.
func (f *Fetcher) download(ctx context.Context, dir string, src Source) ([]Try, error) {
	archive := dir + archiveSuffix
	defer os.Remove(archive)
	tries, err := f.Fetch(ctx, src, archive)
	if err != nil {
		return tries, err
	}
	return tries, packages.Unpack(archive, src.Package, dir)
}

// usable reports whether dir is the complete package p, and removes it otherwise. It reads and compares every file:
// sites purge old files individually, and a worker that lacks one fails with obscure errors.
func usable(dir string, p packages.Package) (bool, error) {
	h, err := packages.Check(dir)
	if err == nil && h.Name() == p.Name {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return false, clearAway(dir) // damaged, or another package by name
}
