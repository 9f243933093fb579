package executor

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// An opened is a directory that stays open while tasks work in it: resolving a name relative to it costs less than a
// walk from the root, and a task needs ten names. The directory contains the tasks of one run; for concurrent tasks of
// another run, names are resolved from the root.
type opened struct {
	mu    sync.Mutex // guards the fields below
	path  string
	fd    int // AT_FDCWD: no directory is open
	users int
}

// take returns a descriptor of the directory, which the caller must later pass to give, or AT_FDCWD if no descriptor is
// available.
func (o *opened) take(path string) (fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd == unix.AT_FDCWD || o.path != path {
		if o.users > 0 {
			return unix.AT_FDCWD
		}
		o.closeLocked()
		fd, err := syscall.Open(path, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return unix.AT_FDCWD // the run has not had a task yet
		}
		o.path, o.fd = path, fd
	}
	o.users++
	return o.fd
}

// give releases a descriptor returned by take.
func (o *opened) give(fd int) {
	if fd == unix.AT_FDCWD {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users--
}

// rest closes the directory unless it is in use.
func (o *opened) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users == 0 {
		o.closeLocked()
	}
}

func (o *opened) closeLocked() {
	if o.fd != unix.AT_FDCWD {
		_ = syscall.Close(o.fd)
		o.fd = unix.AT_FDCWD
	}
}
