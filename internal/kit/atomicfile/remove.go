package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll is like os.RemoveAll but also removes directories that a task made read-only.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(at, 0o700)
		}
		return err
	})
	return os.RemoveAll(path)
}
