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

// A resource is a resource that the kernel limits, as named in setrlimit(2) and /proc/PID/limits.
type resource struct {
	number int
	label  string
}

// resources maps names to the resources whose limits a job inherits from the submitting process.
var resources = map[string]resource{
	"CPU": {unix.RLIMIT_CPU, "Max cpu time"}, "FSIZE": {unix.RLIMIT_FSIZE, "Max file size"},
	"DATA": {unix.RLIMIT_DATA, "Max data size"}, "STACK": {unix.RLIMIT_STACK, "Max stack size"},
	"CORE": {unix.RLIMIT_CORE, "Max core file size"}, "RSS": {unix.RLIMIT_RSS, "Max resident set"},
	"NPROC": {unix.RLIMIT_NPROC, "Max processes"}, "NOFILE": {unix.RLIMIT_NOFILE, "Max open files"},
	"MEMLOCK": {unix.RLIMIT_MEMLOCK, "Max locked memory"}, "AS": {unix.RLIMIT_AS, "Max address space"},
}

// Rlimits returns the sorted names of the resources: those of setrlimit(2) without RLIMIT_.
func Rlimits() []string { return slices.Sorted(maps.Keys(resources)) }

// SoftLimits parses /proc/PID/limits and returns the soft limits of the named resources.
func SoftLimits(text []byte, names []string) map[string]uint64 {
	// A line has a label, which may contain blanks, the soft limit, the hard limit, and a unit.
	soft := map[string]uint64{}
	for line := range bytes.Lines(text) {
		for _, name := range names {
			rest, ok := bytes.CutPrefix(line, []byte(resources[name].label+" "))
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

// lower sets the job's soft limits, as far as the hard limits permit; back restores the previous ones, because this
// process may need more than the job is allowed.
func lower(soft map[string]uint64) (back func(), err error) {
	was := map[int]syscall.Rlimit{}
	back = func() {
		for number, limit := range was {
			_ = syscall.Setrlimit(number, &limit) // the previous value is always permitted
		}
	}
	for _, name := range slices.Sorted(maps.Keys(soft)) {
		r, ok := resources[name]
		var limit syscall.Rlimit
		if !ok {
			continue
		}
		if err := syscall.Getrlimit(r.number, &limit); err != nil {
			return back, fmt.Errorf("reading the limit %s: %w", name, err)
		}
		was[r.number] = limit
		// A worker may have lower limits than the machine where sbatch was called. Only root can exceed the hard limit.
		limit.Cur = min(soft[name], limit.Max)
		if err := syscall.Setrlimit(r.number, &limit); err != nil {
			back()
			return func() {}, fmt.Errorf("setting the limit %s: %w", name, err)
		}
	}
	return back, nil
}
