package atomicfile

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockEvery is the interval between two attempts to take a lock that another process holds: the kernel's blocking wait
// cannot be ended by a context.
const lockEvery = 20 * time.Millisecond

// Lock waits until this process alone holds the lock of f. The kernel releases the lock when f is closed and when the
// process dies for any reason. The error is ctx's cause if ctx ends first.
func Lock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
