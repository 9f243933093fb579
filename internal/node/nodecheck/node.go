// Package nodecheck determines the resources that the machine on which this program runs offers to tasks: memory, free
// disk space, a C library, the speed of a core. Corrald reports them for sites without a batch system, and a pilot
// checks them before it starts workers: both must measure in the same way. The package does not examine other machines.
package nodecheck

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// MemoryMiB returns the amount of memory, in MiB, that this process and its children may use: the machine's memory, or
// less if a control group of the process limits it. sys is the file system that contains proc and sys.
func MemoryMiB(sys fs.FS) (int, error) {
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
			kib, err := strconv.ParseUint(f[1], 10, 63)
			return int(kib >> 10), err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemTotal")
}

// groupLimit returns the tightest limit, in MiB, of the process's control group (version 2) and its ancestors. Each
// ancestor limits its descendants, and a batch system may set any of them. Without version 2, no limit can be
// determined.
func groupLimit(sys fs.FS, group []byte) int {
	limit := math.MaxInt
	_, dir, ok := strings.Cut(string(group), "0::/")
	if !ok {
		return limit
	}
	dir = "sys/fs/cgroup/" + strings.TrimSpace(dir)
	for ; dir != "sys/fs" && dir != "."; dir = path.Dir(dir) {
		b, err := fs.ReadFile(sys, path.Join(dir, "memory.max"))
		if err != nil {
			continue // the root group has no limit; without the controller no group has
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63); err == nil { // otherwise it is "max"
			limit = min(limit, int(n>>20))
		}
	}
	return limit
}
