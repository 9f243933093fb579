package nodecheck

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

const (
	// minFreeMiB is the disk space that must be free where the job runs: a full disk makes every task fail within
	// milliseconds, and a whole workflow could fail on such a node.
	minFreeMiB = 100

	// clockTolerance limits the difference between the node's clock and corrald's. Records contain times from both, and
	// the node checks certificates against its own clock.
	clockTolerance = time.Minute
)

// Check tests the properties of this node that every task needs, before workers are started: a scratch directory that
// keeps written data, free disk space, and memory. The error names the check and its result.
func Check(scratch string, memoryMiB int) error {
	if err := checkScratch(scratch); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	free, err := freeMiB(scratch)
	if err = checkAtLeast(free, minFreeMiB, err); err != nil {
		return fmt.Errorf("disk of %s: %w", scratch, err)
	}
	have, err := MemoryMiB(os.DirFS("/"))
	err = checkAtLeast(have, memoryMiB, err)
	return wrap.Errorf(err, "memory")
}

// CheckClock checks a node's clock; offset is the time by which corrald's clock is ahead of it, which may be negative.
func CheckClock(offset time.Duration) error {
	if offset.Abs() > clockTolerance {
		return fmt.Errorf("clock: corrald's is %s ahead, more than %s", offset.Round(time.Second), clockTolerance)
	}
	return nil
}

// checkScratch writes a file and reads it back: some network file systems accept a write and lose the data.
func checkScratch(dir string) error {
	name := filepath.Join(dir, ".check")
	defer os.Remove(name)
	want := []byte("written by a pilot's check of its node\n")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		return err
	}
	got, err := os.ReadFile(name)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s does not contain the data that was written", name)
	}
	return err
}

// checkAtLeast compares a measured value with the required one, unless the measurement failed with err.
func checkAtLeast(haveMiB, wantMiB int, err error) error {
	if err == nil && haveMiB < wantMiB {
		err = fmt.Errorf("%d MiB, less than %d MiB", haveMiB, wantMiB)
	}
	return err
}

// freeMiB returns the amount of data, in MiB, that an ordinary user may still write below dir. The size of the blocks
// in bytes may exceed an int64.
func freeMiB(dir string) (int, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	block := uint64(st.Bsize)
	return int(min(st.Bavail, math.MaxInt64/block) * block >> 20), nil
}
