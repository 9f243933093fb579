package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes the file name with this mode, atomically: a reader finds either the old content or the new, never a
// part. It does not protect against a power failure. Only one caller at a time may replace a file.
func Replace(name string, content []byte, mode fs.FileMode) error {
	aside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	if err := os.WriteFile(aside, content, mode); err != nil {
		return err
	}
	return os.Rename(aside, name)
}

// Keep replaces a file like Replace, and also protects against a power failure: it returns when the content and its
// name are on the disk.
func Keep(name string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder writes a folder's list of names to the disk: without it, a renamed file may be lost.
func SyncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
