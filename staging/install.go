package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/packages"
)

// cacheDir is the folder below a site's root that holds its packages.
const cacheDir = "packages"

// lockPoll is how often a held lock is asked for again: downloads take seconds.
const lockPoll = 50 * time.Millisecond

// Dir returns where Install puts a package below a site's root. The error is Invalid if the digest is
// not well formed.
func Dir(root string, p packages.Package) (string, error) {
	digits, err := packages.HexOf(p.Digest)
	return filepath.Join(root, cacheDir, digits), err
}

// Install makes sure that the package of src is unpacked below root, and returns its directory. A
// package that is there, and whole, is used as it is and nothing is transferred; a damaged one is
// replaced. Of several Installs at once one downloads and the others wait for it. The error's kind is
// that of Fetch or packages.Unpack; then nothing of the package is left.
func (f *Fetcher) Install(ctx context.Context, root string, src Source) (dir string, tries []Try, err error) {
	dir, err = Dir(root, src.Package)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", nil, fmt.Errorf("install package %s: %w", src.Package.Name, err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", nil, fmt.Errorf("install package %s: %w", src.Package.Name, err)
	}
	defer unlock()
	if ready, err := usable(dir, src.Package); ready || err != nil {
		return dir, nil, err
	}
	archive := dir + archiveSuffix
	defer os.Remove(archive)
	tries, err = f.Fetch(ctx, src, archive)
	if err != nil {
		return "", tries, err
	}
	return dir, tries, packages.Unpack(archive, src.Package, dir)
}

// usable reports whether dir is the whole package p, and clears it away if it is not.
func usable(dir string, p packages.Package) (bool, error) {
	h, err := packages.Check(dir)
	if err == nil && h.Name() == p.Name {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// Renamed first, so that nobody starts from a directory that is half gone.
	old := dir + ".damaged"
	if err := errors.Join(os.RemoveAll(old), os.Rename(dir, old), os.RemoveAll(old)); err != nil {
		return false, fmt.Errorf("clear away damaged package %s: %w", p.Name, err)
	}
	return false, nil
}

// lock waits until this process holds the lock file alone. The file stays: removing it would let two
// hold it, one each side of the removal. The kernel frees the lock of a process that dies.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock %s, held by another setup job: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}

// Uninstall removes a package from the cache below root; what is not there is no error. No pilot may
// be using it.
func Uninstall(root string, p packages.Package) error {
	dir, err := Dir(root, p)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".lock")); err != nil {
		return fmt.Errorf("uninstall package %s: %w", p.Name, err)
	}
	return nil
}
