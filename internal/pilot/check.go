package pilot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/order"
)

const (
	// minFreeMiB is the least that a node must have free where the job runs: a full disk fails every
	// task in milliseconds, and such a node would swallow a whole workflow.
	minFreeMiB = 100

	// clockTolerance is how far the node's clock may be from corrald's. Records carry times of both,
	// and certificates are checked against the node's.
	clockTolerance = time.Minute
)

// checkNode looks at what every task needs, before anything is started. The error names the check and
// what it found.
func checkNode(scratch string, p order.Pilot) error {
	if err := checkScratch(scratch); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	free, err := freeMiB(scratch)
	if err == nil {
		err = checkAtLeast(free, minFreeMiB)
	}
	if err != nil {
		return fmt.Errorf("disk of %s: %w", scratch, err)
	}
	have, err := memoryMiB(os.DirFS("/"))
	if err == nil {
		err = checkAtLeast(have, p.Hosts*p.MemoryMiB)
	}
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// checkScratch writes a file and reads it back.
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

func checkAtLeast(haveMiB, wantMiB int) error {
	if haveMiB < wantMiB {
		return fmt.Errorf("%d MiB, less than %d MiB", haveMiB, wantMiB)
	}
	return nil
}

// checkClock takes how far corrald's clock is ahead of ours.
func checkClock(offset time.Duration) error {
	if offset.Abs() > clockTolerance {
		return fmt.Errorf("clock: corrald's is %s ahead, more than %s", offset.Round(time.Second), clockTolerance)
	}
	return nil
}

// freeMiB is what an ordinary user may still write below dir.
func freeMiB(dir string) (int, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int(min(st.Bavail, math.MaxInt64/uint64(st.Bsize)) * uint64(st.Bsize) >> 20), nil
}

// memoryMiB is how much this process and its children may use: the machine's memory, or less if a
// control group of ours limits it. sys is the file system that has proc and sys.
func memoryMiB(sys fs.FS) (int, error) {
	info, err := fs.ReadFile(sys, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	total, err := memTotal(info)
	if err != nil {
		return 0, err
	}
	group, err := fs.ReadFile(sys, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return total, nil
	} else if err != nil {
		return 0, err
	}
	return min(total, groupLimit(sys, group)), nil
}

// memTotal reads the MemTotal line of /proc/meminfo.
func memTotal(meminfo []byte) (int, error) {
	for line := range strings.Lines(string(meminfo)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return int(kib >> 10), err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemTotal")
}

// groupLimit returns the tightest limit, in MiB, from our control group (version 2) up to the top.
func groupLimit(sys fs.FS, group []byte) int {
	limit := math.MaxInt
	_, dir, ok := strings.Cut(string(group), "0::/")
	if !ok {
		return limit
	}
	dir = "sys/fs/cgroup/" + strings.TrimSpace(dir)
	for ; dir != "sys/fs" && dir != "."; dir = filepath.Dir(dir) {
		b, err := fs.ReadFile(sys, filepath.Join(dir, "memory.max"))
		if err != nil {
			continue // the top has none, and without the controller nobody has
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil { // else "max"
			limit = min(limit, int(n>>20))
		}
	}
	return limit
}
