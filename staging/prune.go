package staging

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Names beside a package's directory root/packages/HEX. A process that installs or removes the package holds the lock
// exclusively. Every process that runs programs of the package holds the use file, shared; the file's time is that of
// the last use.
const (
	lockSuffix     = ".lock"
	useSuffix      = ".use"
	incomingSuffix = ".incoming" // an archive pushed by corrald
)

// Use records that programs of the package in dir, which Install created, are running. Prune does not remove the
// package until release is called or this process ends.
func Use(dir string) (release func(), err error) {
	f, err := hold(dir+useSuffix, unix.LOCK_SH)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("%s is being removed", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("noting the use of %s: %w", dir, err)
	}
	// Locking does not change the file's time.
	now := time.Now()
	if err := os.Chtimes(dir+useSuffix, now, now); err != nil {
		return nil, errors.Join(fmt.Errorf("noting the use of %s: %w", dir, err), f.Close())
	}
	return func() { f.Close() }, nil
}

// A cached package uses space at a site.
type cached struct {
	dir   string
	bytes int64
	used  time.Time
}

// Prune removes packages from the cache below root, the least recently used first, until the rest has at most limit
// bytes. Packages in use and those in the dirs of keep are never removed, whatever the limit. It returns the removed
// directories.
func Prune(root string, limit int64, keep ...string) (gone []string, err error) {
	all, err := cache(root)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, c := range all {
		total += c.bytes
	}
	slices.SortFunc(all, func(a, b cached) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.dir, b.dir)) })
	// Packages that stay count towards the limit, so others may have to be removed instead.
	for _, c := range all {
		if total <= limit || slices.Contains(keep, c.dir) {
			continue
		}
		removed, err := c.remove()
		if err != nil {
			return gone, err
		}
		if removed {
			gone = append(gone, c.dir)
			total -= c.bytes
		}
	}
	return gone, nil
}

// cache lists the packages installed below root. Names with a dot are locks, use files, archives, and packages being
// installed or removed.
func cache(root string) ([]cached, error) {
	entries, err := os.ReadDir(filepath.Join(root, cacheDir))
	if err != nil {
		return nil, fmt.Errorf("listing the package cache: %w", err)
	}
	var all []cached
	for _, e := range entries {
		if !e.IsDir() || strings.Contains(e.Name(), ".") {
			continue
		}
		c := cached{dir: filepath.Join(root, cacheDir, e.Name())}
		if info, err := os.Stat(c.dir + useSuffix); err == nil {
			c.used = info.ModTime()
		}
		if c.bytes, err = treeSize(c.dir); err != nil {
			return nil, fmt.Errorf("listing the package cache: %w", err)
		}
		all = append(all, c)
	}
	return all, nil
}

// treeSize adds up the files below dir.
func treeSize(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// remove removes the package unless a process uses it or is installing it.
func (c cached) remove() (removed bool, err error) {
	// The lock comes first, so that no job installs the package meanwhile, then the use file, which running pilots
	// share.
	for _, name := range []string{c.dir + lockSuffix, c.dir + useSuffix} {
		f, err := hold(name, unix.LOCK_EX)
		if errors.Is(err, errHeld) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("pruning %s: %w", c.dir, err)
		}
		defer f.Close()
		defer os.Remove(name)
	}
	return true, clearAway(c.dir)
}

// clearAway renames the directory before removing it, so that no job starts from a partially removed directory.
func clearAway(dir string) error {
	old := dir + ".old"
	return wrap.Errorf(errors.Join(os.RemoveAll(old), os.Rename(dir, old), os.RemoveAll(old)), "clear away %s", dir)
}
