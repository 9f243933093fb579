// Package atomicfile provides file operations that the standard library lacks: it replaces a file atomically, waits for
// a lock, spreads many files over a file system, and removes files that tasks have left read-only.
package atomicfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// topDir is the kernel's FS_TOPDIR_FL, which is missing in package unix; chattr(1) calls it T.
const topDir = 0x20000

// Scatter declares that directories created in dir from now on are unrelated, so that each should be placed in a
// separate area of the disk. Otherwise ext4 puts all of them close to dir, and if many files were deleted in the last
// few minutes, it checks the inode of each deleted file before it finds an inode for a new file: creating the few files
// of a task then takes milliseconds.
//
// Scatter is a hint. A file system that does not support it returns an error, which the caller may ignore.
func Scatter(dir string) error {
	return inFlags(dir, func(fd, flags int) error {
		if flags&topDir != 0 {
			return nil
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|topDir)
	})
}

// Scattered reports whether Scatter has been called for dir. It fails in the cases in which Scatter would fail.
func Scattered(dir string) (yes bool, err error) {
	err = inFlags(dir, func(_, flags int) error {
		yes = flags&topDir != 0
		return nil
	})
	return yes, err
}

// inFlags calls do with the flags of dir and a file descriptor for changing them.
func inFlags(dir string, do func(fd, flags int) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening a directory for its flags: %w", err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = do(int(f.Fd()), flags)
	}
	return wrap.Errorf(err, "flags of %s", dir)
}
