package runas

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
)

// The methods below check in advance, without making changes, whether a service will have the access that it needs.
// Make and the service itself run later; an answer may be outdated by then, so neither relies on it.

// An Access is a kind of access to a file or directory.
type Access uint32

const (
	Read  Access = unix.R_OK
	Write Access = unix.W_OK
	Enter Access = unix.X_OK
)

// May reports whether u has the access. The check runs as u, because modes alone are not conclusive with access lists
// or network file systems.
func (u User) May(do Access, path string) bool {
	if !u.Other() {
		return unix.Faccessat(unix.AT_FDCWD, path, uint32(do), unix.AT_EACCESS) == nil
	}
	for flag, bit := range map[string]Access{"-r": Read, "-w": Write, "-x": Enter} {
		if do&bit == 0 {
			continue
		}
		test := exec.Command("/bin/sh", "-c", `test "$1" "$2"`, "sh", flag, path)
		test.Dir = "/"
		u.Run(test)
		if test.Run() != nil {
			return false
		}
	}
	return true
}

// kernels are file systems in which programs cannot create directories: proc, sysfs, cgroup, cgroup2, debugfs, tracefs,
// securityfs, devpts, configfs, bpf, binfmt_misc.
var kernels = []int64{0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x1cd1, 0x62656570,
	0xcafe4a11, 0x42494e4d}

// MayMake returns the error that would prevent Make from creating dir, or u from writing to it. It changes nothing.
func (u User) MayMake(dir string) error {
	at, info, err := nearest(dir)
	if err != nil {
		return corral.Errorf(corral.Invalid, "%s cannot be examined: %w", dir, reason(err))
	}
	var fsys unix.Statfs_t
	switch {
	case !info.IsDir():
		return corral.Errorf(corral.Invalid, "%s is not a directory", at)
	case unix.Statfs(at, &fsys) == nil && slices.Contains(kernels, int64(fsys.Type)):
		return corral.Errorf(corral.Invalid, "%s cannot be created: %s belongs to the kernel, which does not store "+
			"other files", dir, at)
	case u.Other():
		return u.mayTake(dir, at)
	case !u.May(Write|Enter, at):
		return corral.Errorf(corral.Invalid, "%s is not writable for %s, who runs corrald: change its owner, or "+
			"name another directory", at, Name(os.Geteuid()))
	}
	return nil
}

// mayTake is MayMake for another user; at is dir, or its nearest existing ancestor.
func (u User) mayTake(dir, at string) error {
	if err := u.mayEnter(filepath.Dir(dir)); err != nil {
		return err
	}
	if at != dir { // root creates it
		if unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil {
			return corral.Errorf(corral.Invalid, "%s cannot be created: %s is read-only", dir, at)
		}
		return nil
	}
	fd, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return corral.Errorf(corral.Invalid, "%s is not a directory, or is a link to one: name a directory", dir)
	}
	defer fd.Close()
	_, err = u.owns(fd)
	return err
}

// owns reports whether an open directory already belongs to u. It returns an error if the directory neither belongs to
// u nor is an empty directory of root's: other directories of root's may contain anything, and must not be given to u.
func (u User) owns(fd *os.File) (already bool, err error) {
	info, err := fd.Stat()
	if err != nil {
		return false, corral.Errorf(corral.Invalid, "%s cannot be examined: %w", fd.Name(), reason(err))
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner == u.uid { // created by an earlier start, or by the user
		return true, nil
	}
	_, err = fd.Readdirnames(1)
	if empty := errors.Is(err, io.EOF); owner != os.Geteuid() || !empty {
		return false, corral.Errorf(corral.Conflict, "%s does not belong to %s and is not empty: remove it if it is "+
			"not used any more, or name another directory with the XDG variables", fd.Name(), u.Name)
	}
	return false, nil
}

// nearest returns dir, or its nearest existing ancestor.
func nearest(dir string) (at string, info fs.FileInfo, err error) {
	for at = filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err = os.Stat(at)
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if !missing || at == filepath.Dir(at) {
			return at, info, err
		}
	}
}

// reason returns the cause of a file system error, without the name of the call.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
