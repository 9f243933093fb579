package nodecheck

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// minFreeMiB is the least that a node must have free where the job runs: a full disk fails every
	// task in milliseconds, and such a node would swallow a whole workflow.
	minFreeMiB = 100

	// clockTolerance is how far the node's clock may be from corrald's. Records carry times of both,
	// and the node checks certificates against its own clock.
	clockTolerance = time.Minute
)

// Check looks at what every task needs of this node, before anything is started: a scratch directory that keeps what is
// written, free disk, and memory. The error names the check and what it found.
func Check(scratch string, memoryMiB int) error {
	if err := checkScratch(scratch); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	free, err := freeMiB(scratch)
	if err = checkAtLeast(free, minFreeMiB, err); err != nil {
		return fmt.Errorf("disk of %s: %w", scratch, err)
	}
	have, err := MemoryMiB(os.DirFS("/"))
	if err = checkAtLeast(have, memoryMiB, err); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// CheckClock judges a node's clock by how far corrald's is ahead of it, which may be negative.
func CheckClock(offset time.Duration) error {
	if offset.Abs() > clockTolerance {
		return fmt.Errorf("clock: corrald's is %s ahead, more than %s", offset.Round(time.Second), clockTolerance)
	}
	return nil
}

// checkScratch writes a file and reads it back: some network file systems accept a write and lose it.
func checkScratch(dir string) error {
	name := filepath.Join(dir, ".check")
	defer os.Remove(name)
	want := []byte("written by a pilot's check of its node\n")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		return err
	}
	got, err := os.ReadFile(name)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s does not hold what was written", name)
	}
	return err
}

// checkAtLeast judges what was measured, unless that failed with err.
func checkAtLeast(haveMiB, wantMiB int, err error) error {
	if err == nil && haveMiB < wantMiB {
		err = fmt.Errorf("%d MiB, less than %d MiB", haveMiB, wantMiB)
	}
	return err
}

// freeMiB is what an ordinary user may still write below dir. A file system may claim more blocks than an int64 counts
// in bytes.
func freeMiB(dir string) (int, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	block := uint64(st.Bsize)
	return int(min(st.Bavail, math.MaxInt64/block) * block >> 20), nil
}
