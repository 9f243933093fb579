package workflow

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// executions are the tasks of workflow.execution as the document lists them. They carry what the format says of a task
// besides its structure, even of one that never ran: the command and the number of cpus.
type executions []execution

type execution struct {
	execTask
	at Place
}

// join completes the tasks, which all have been added, with what their executions say.
func (x executions) join(b *Builder, wf *Workflow) error {
	joined := make([]bool, len(wf.Tasks))
	for k := range x {
		e := &x[k]
		i, ok := b.Index(e.ID)
		if !ok {
			return e.at.Errorf("execution of task %q, which the specification does not have", e.ID)
		}
		if joined[i] {
			return e.at.Errorf("task %q has two executions", e.ID)
		}
		joined[i] = true
		if err := e.apply(&wf.Tasks[i]); err != nil {
			return e.at.Errorf("execution of task %q: %w", e.ID, err)
		}
		started, ok := parseTime(e.ExecutedAt)
		if !ok {
			b.Warn(e.at, "execution of task %q: executedAt %q is not a time that is understood", e.ID, e.ExecutedAt)
		}
		wf.Tasks[i].StartedAt = started
	}
	for i := range wf.Tasks {
		derive(&wf.Tasks[i])
	}
	return nil
}

// apply gives the task what its execution says.
func (e *execTask) apply(t *Task) error {
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

// Marks of what x-corral did not give, until derive replaces them: 0 says that the value is not known, and then what was
// measured does not count either.
const (
	notGiven         = -1
	notGivenDuration = time.Duration(-1)
)

// apply gives the task what x-corral says; a nil extension says nothing.
func (x *extension) apply(t *Task) error {
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

// derive fills what x-corral did not give from what was measured.
func derive(t *Task) {
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
