// Package atomicfile does with files what the standard library leaves out: it replaces one at once and waits for a
// lock, spreads many files over a file system, and removes what tasks have left read-only.
package atomicfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// topDir is the kernel's FS_TOPDIR_FL, which package unix lacks; chattr(1) calls it T.
const topDir = 0x20000

// Scatter says that the directories made in dir from now on have nothing to do with each other, so
// that each should get a place of its own on the disk. Otherwise ext4 puts all of them close to dir,
// and where many files were deleted within the last minutes it looks at the inode of each of them
// before it finds one for a new file: making the few files of a task then takes milliseconds.
//
// It is a hint. A file system that does not know it gives an error, which the caller may ignore.
func Scatter(dir string) error {
	return inFlags(dir, func(fd, flags int) error {
		if flags&topDir != 0 {
			return nil
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|topDir)
	})
}

// Scattered reports whether Scatter has been called for dir. It fails where Scatter would.
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
	if err != nil {
		return fmt.Errorf("flags of %s: %w", dir, err)
	}
	return nil
}
