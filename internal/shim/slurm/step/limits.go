package step

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A resource is something that the kernel limits, in the words of setrlimit(2) and of /proc/PID/limits.
type resource struct {
	number int
	label  string
}

// resources are those whose limits a job takes along from where it was submitted.
var resources = map[string]resource{
	"CPU": {unix.RLIMIT_CPU, "Max cpu time"}, "FSIZE": {unix.RLIMIT_FSIZE, "Max file size"},
	"DATA": {unix.RLIMIT_DATA, "Max data size"}, "STACK": {unix.RLIMIT_STACK, "Max stack size"},
	"CORE": {unix.RLIMIT_CORE, "Max core file size"}, "RSS": {unix.RLIMIT_RSS, "Max resident set"},
	"NPROC": {unix.RLIMIT_NPROC, "Max processes"}, "NOFILE": {unix.RLIMIT_NOFILE, "Max open files"},
	"MEMLOCK": {unix.RLIMIT_MEMLOCK, "Max locked memory"}, "AS": {unix.RLIMIT_AS, "Max address space"},
}

// SoftLimits reads /proc/PID/limits: the soft limits of a process by the names of resources.
func SoftLimits(text []byte) map[string]uint64 {
	// A line is a label, which may have blanks, then the soft limit, the hard one, and a unit.
	soft := map[string]uint64{}
	for line := range bytes.Lines(text) {
		for name, r := range resources {
			rest, ok := bytes.CutPrefix(line, []byte(r.label+" "))
			fields := bytes.Fields(rest)
			if !ok || len(fields) < 2 {
				continue
			}
			if n, err := strconv.ParseUint(string(fields[0]), 10, 64); err == nil {
				soft[name] = n
			} else if string(fields[0]) == "unlimited" {
				soft[name] = unix.RLIM_INFINITY
			}
		}
	}
	return soft
}

// lower sets the soft limits that the job is to have, as far as the hard ones here allow it; back undoes that, since
// this process needs more than a job may be allowed.
func lower(soft map[string]uint64) (back func(), err error) {
	was := map[int]syscall.Rlimit{}
	back = func() {
		for number, limit := range was {
			_ = syscall.Setrlimit(number, &limit) // what it was cannot be too much
		}
	}
	for _, name := range slices.Sorted(maps.Keys(soft)) {
		r, ok := resources[name]
		var limit syscall.Rlimit
		if !ok {
			continue
		}
		if err := syscall.Getrlimit(r.number, &limit); err != nil {
			return back, fmt.Errorf("looking at the limit %s: %w", name, err)
		}
		was[r.number] = limit
		// A worker may have less than the machine where sbatch was called. To go beyond the hard limit takes root.
		limit.Cur = min(soft[name], limit.Max)
		if err := syscall.Setrlimit(r.number, &limit); err != nil {
			back()
			return func() {}, fmt.Errorf("setting the limit %s: %w", name, err)
		}
	}
	return back, nil
}
