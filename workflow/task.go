package workflow

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Marks of what x-corral did not give, until derive replaces them.
const (
	notGiven         = -1
	notGivenDuration = time.Duration(-1)
)

// extend takes over what x-corral says.
func (t *Task) extend(x *extension) error {
	t.MemoryMiB, t.Estimate = notGiven, notGivenDuration
	if x == nil {
		return nil
	}
	if x.MemoryMiB != nil {
		if t.MemoryMiB = *x.MemoryMiB; t.MemoryMiB < 0 {
			return fmt.Errorf("memory_mib: %d is negative", t.MemoryMiB)
		}
	}
	if x.Retries != nil && *x.Retries < 0 {
		return fmt.Errorf("retries: %d is negative", *x.Retries)
	}
	if x.Estimate != nil {
		t.Estimate = time.Duration(*x.Estimate)
	}
	t.Retries, t.Timeout, t.Env = x.Retries, time.Duration(x.Timeout), x.Env
	t.Stdin, t.Stdout, t.Stderr = x.Stdin, x.Stdout, x.Stderr
	return nil
}

// execute takes over what the execution says.
func (t *Task) execute(e *execTask) error {
	if c := e.Command; c != nil && (c.Program != "" || len(c.Arguments) > 0) {
		t.Argv = slices.Concat([]string{c.Program}, c.Arguments)
	}
	if e.Cores != nil {
		if *e.Cores < 1 || *e.Cores > maxCPUs {
			return fmt.Errorf("coreCount: %v, want 1 to %d", *e.Cores, maxCPUs)
		}
		t.CPUs = int(math.Ceil(*e.Cores))
	}
	cpu := e.AvgCPU / 100 * float64(e.Runtime)
	if cpu < 0 || cpu > math.MaxInt64/2 {
		return fmt.Errorf("avgCPU: %v is negative or too large", e.AvgCPU)
	}
	t.Runtime, t.CPUTime = time.Duration(e.Runtime), time.Duration(math.Round(cpu))
	t.MemoryBytes, t.ReadBytes, t.WrittenBytes = int64(e.Memory), int64(e.Read), int64(e.Written)
	if len(e.Machines) > 0 {
		t.Worker = e.Machines[0]
	}
	return nil
}

// derive fills what x-corral did not give from what was measured.
func (t *Task) derive() {
	if t.MemoryMiB == notGiven {
		t.MemoryMiB = mebibytes(t.MemoryBytes)
	}
	if t.Estimate == notGivenDuration {
		t.Estimate = t.Runtime
	}
}

// mebibytes rounds up.
func mebibytes(b int64) int {
	return int((b >> 20) + min(1, b&(1<<20-1)))
}
