package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// lockPatience is how long a lock may outlive the process that took it: until each child that was
// between fork and exec when it died has let go of its copy. On a busy machine that has been seen.
const lockPatience = time.Second

// lockFile takes the lock that says whose the database at path is: an flock on a file beside it, which
// the kernel gives free when the process dies, however it dies. The file holds the pid for people and
// is never deleted: a second process could lock a file whose name is gone.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking database: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if err := atomicfile.Lock(patience, f); err != nil {
		defer f.Close()
		if patience.Err() != nil {
			return nil, corral.Errorf(corral.Conflict, "database %s is in use by process %s", path, holder(f))
		}
		return nil, fmt.Errorf("locking database %s: %w", path, err)
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		return nil, errors.Join(fmt.Errorf("locking database %s: %w", path, err), f.Close())
	}
	return f, nil
}

// writePID leaves the process's number in the lock file, for the message to the next process that wants the lock.
func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads who holds the lock; the holder may not have written it yet.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := bytes.TrimSpace(b); err == nil && len(pid) > 0 {
		return string(pid)
	}
	return "unknown"
}
