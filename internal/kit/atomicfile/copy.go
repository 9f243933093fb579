package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Copy copies the file or directory at from, following a link, to the new path to. If the file system supports it, the
// copy and the original share their blocks until one of them is changed, so that copying takes no time. Links below a
// directory remain links. The owner of the copy may write to it, regardless of the original's mode.
func Copy(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return copyAny(from, to, info)
}

func copyAny(from, to string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return copyDir(from, to, info)
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case info.Mode().IsRegular():
		return copyFile(from, to, info)
	}
	return &fs.PathError{Op: "copy", Path: from, Err: errors.New("is neither a file nor a directory")}
}

// Permissions that the owner of a copy always has.
const (
	ownerMayWrite  fs.FileMode = 0o200
	ownerMayDoMore fs.FileMode = 0o700 // for a directory
)

func copyDir(from, to string, info fs.FileInfo) error {
	if err := os.Mkdir(to, info.Mode().Perm()|ownerMayDoMore); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below, err := e.Info()
		if err == nil {
			err = copyAny(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), below)
		}
		if err != nil {
			return err
		}
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// copyFile copies a file with its modification time, for programs that compare the ages of files.
func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|ownerMayWrite)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil { // most file systems do not support this
		_, err = io.Copy(out, in)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
