package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is the interval of tries to get a held lock: downloads take seconds.
const lockPoll = 50 * time.Millisecond

// A lock file is removed by its last holder, so that the cache does not fill with lock files. This opens a race:
// between opening a file and locking it, its holder may remove the file, and another process may lock a new one of the
// same name. Therefore a process that gets a lock checks that the name still refers to the file, and otherwise starts
// over.

var errHeld = errors.New("held by another process")

// hold opens the file name, created if necessary, under a kernel lock, which the kernel releases when the process dies;
// how is unix.LOCK_EX or LOCK_SH. Closing the file releases the lock; an exclusive holder may remove the file first.
// The error is errHeld if another process has the lock.
func hold(name string, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		current := err == nil && isCurrent(f, name)
		if current {
			return f, nil
		}
		f.Close()
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errHeld
		case err != nil && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
	}
}

// isCurrent reports whether name still refers to f: its last holder may have removed it before f was locked.
func isCurrent(f *os.File, name string) bool {
	mine, err1 := f.Stat()
	current, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(mine, current)
}

// lock waits until this process holds the lock file exclusively; unlock removes it.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		f, err := hold(name, unix.LOCK_EX)
		if err == nil {
			// Removed while still locked: isCurrent detects this in a process that has opened the file meanwhile.
			return func() { os.Remove(name); f.Close() }, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s, held by another setup job: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}
