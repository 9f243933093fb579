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

// lockPatience is how long a lock may outlive the process that took it: if the process died while a child was between
// fork and exec, the child still holds a copy. This has been observed on busy machines.
const lockPatience = time.Second

// lockFile takes the lock that identifies the owner of the database at path: an flock on a file beside it, which the
// kernel releases when the process dies for any reason. The file contains the pid as information for people. It is
// never deleted, because a second process could then lock a file that no longer has a name.
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

// writePID writes the process id into the lock file, for the message to the next process that wants the lock.
func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the id of the process that holds the lock. The process may not have written its id yet.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := bytes.TrimSpace(b); err == nil && len(pid) > 0 {
		return string(pid)
	}
	return "unknown"
}
