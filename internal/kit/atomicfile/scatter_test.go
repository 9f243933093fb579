package atomicfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// On ext4 the flag is set, and setting it again is harmless. On other file systems the error says that it cannot be
// set.
func TestScatter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var where unix.Statfs_t
	if err := unix.Statfs(dir, &where); err != nil {
		t.Fatal(err)
	}
	if yes, err := Scattered(dir); yes {
		t.Errorf("a new directory is scattered (%v)", err)
	}
	for range 2 {
		err := Scatter(dir)
		yes, _ := Scattered(dir)
		switch {
		case yes != (err == nil):
			t.Errorf("Scatter says %v, Scattered %t", err, yes)
		case err != nil && where.Type == unix.EXT4_SUPER_MAGIC:
			t.Errorf("on ext4: %v", err)
		case err != nil && !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL):
			t.Errorf("a file system without the flag: %v", err)
		}
	}
	if _, err := Scattered(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := Scatter(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
