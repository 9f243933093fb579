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

// lockPoll is how often a held lock is asked for again: downloads take seconds.
const lockPoll = 50 * time.Millisecond

// A lock file is removed by its last holder, so that the cache does not fill with them. That opens a gap: between
// opening a file and locking it, its holder may remove it, and another process may lock a new one of the same name.
// So whoever gets a lock checks that the name still leads to the file, and else begins again.

var errHeld = errors.New("held by another process")

// hold opens the file name, made if need be, under a lock of the kernel's, which frees it when the
// process dies; how is unix.LOCK_EX or LOCK_SH. Closing the file frees the lock; a process that holds it alone may
// remove the file first. The error is errHeld if another process has the lock.
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

// isCurrent reports whether name is still f: its last holder may have removed it before we had it.
func isCurrent(f *os.File, name string) bool {
	mine, err1 := f.Stat()
	current, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(mine, current)
}

// lock waits until this process holds the lock file alone; unlock removes it.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		f, err := hold(name, unix.LOCK_EX)
		if err == nil {
			// Removed while it is still locked: see above for a process that has opened it meanwhile.
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
