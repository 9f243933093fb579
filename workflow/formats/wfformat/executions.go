package wfformat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// executions collects the tasks of workflow.execution. Besides measurements, these contain the command and the number
// of cpus, even for a task that never ran. An execution whose task is already known, as in every file in which the
// specification comes first, is joined with the task at once; other executions are deferred.
type executions struct {
	count   int
	joined  []bool // :: task → whether its execution was found; missing: false
	timed   []bool // :: task → whether its execution contains a runtime; missing: false
	waiting []execution
}

// An execution is one element of the list workflow.execution.tasks together with its place.
type execution struct {
	execTask
	at workflow.Place
}

// add adds an execution.
func (x *executions) add(b *workflow.Builder, wf *workflow.Workflow, e execution) error {
	x.count++
	i, ok := b.Index(e.ID)
	// A duplicate is reported later, after the check for too many executions.
	if !ok || i < len(x.joined) && x.joined[i] {
		x.waiting = append(x.waiting, e)
		return nil
	}
	return x.joinOne(b, wf, i, &e)
}

// joinOne completes a task with the data of its execution.
func (x *executions) joinOne(b *workflow.Builder, wf *workflow.Workflow, i int, e *execution) error {
	if more := i + 1 - len(x.joined); more > 0 {
		x.joined = append(x.joined, make([]bool, more)...)
		x.timed = append(x.timed, make([]bool, more)...)
	}
	if x.joined[i] {
		return e.at.Errorf("task %q has two executions", e.ID)
	}
	x.joined[i], x.timed[i] = true, e.Runtime != nil
	if err := e.apply(&wf.Tasks[i]); err != nil {
		return e.at.Errorf("execution of task %q: %w", e.ID, err)
	}
	started, ok := parseTime(e.ExecutedAt)
	if !ok {
		b.Warn(e.at, "execution of task %q: executedAt %q is not a supported time format", e.ID, e.ExecutedAt)
	}
	wf.Tasks[i].StartedAt = started
	return nil
}

// join completes the tasks with the data of their deferred executions, after all tasks have been added.
func (x *executions) join(b *workflow.Builder, wf *workflow.Workflow) error {
	for k := range x.waiting {
		e := &x.waiting[k]
		i, ok := b.Index(e.ID)
		if !ok {
			return e.at.Errorf("execution of task %q, which is missing in the specification", e.ID)
		}
		if err := x.joinOne(b, wf, i, e); err != nil {
			return err
		}
	}
	x.waiting = nil
	for i := range wf.Tasks { // values missing in x-corral are derived from the measurements
		t := &wf.Tasks[i]
		if t.MemoryMiB == notGiven {
			t.MemoryMiB = mebibytes(t.MemoryBytes)
		}
		if t.Estimate == notGiven { // a workflow that never ran also contains runtimes of 0
			t.Estimate = t.Runtime
			timed := i < len(x.timed) && x.timed[i]
			t.Instant = (t.Instant || timed && wf.Makespan > 0) && t.Runtime == 0 && !t.Measured()
		}
	}
	return nil
}

// apply completes the task with the data of its execution. A task runs on whole cpus, so a fractional number is rounded
// up; the cpu time of the task's processes is the measured share of the runtime.
func (e *execTask) apply(t *workflow.Task) error {
	if c := e.Command; c != nil && (c.Program != "" || len(c.Arguments) > 0) {
		t.Argv = slices.Concat([]string{c.Program}, c.Arguments)
	}
	if e.Cores != nil {
		if *e.Cores < 1 || *e.Cores > workflow.MaxCPUs {
			return fmt.Errorf("coreCount: %v, want 1 to %d", *e.Cores, workflow.MaxCPUs)
		}
		t.CPUs = int(math.Ceil(*e.Cores))
	}
	if e.Runtime != nil {
		t.Runtime = time.Duration(*e.Runtime)
	}
	cpu := e.AvgCPU / 100 * float64(t.Runtime)
	if cpu < 0 || cpu > math.MaxInt64/2 {
		return fmt.Errorf("avgCPU: %v is negative or too large", e.AvgCPU)
	}
	t.CPUTime = time.Duration(math.Round(cpu))
	t.MemoryBytes, t.ReadBytes, t.WrittenBytes = int64(e.Memory), int64(e.Read), int64(e.Written)
	if len(e.Machines) > 0 {
		t.Worker = e.Machines[0]
	}
	return nil
}

// notGiven marks memory and estimates that are missing in x-corral, until join replaces them. 0 cannot be used as the
// mark, because in x-corral it means that the value is unknown, even if it was measured.
const notGiven = -1

// apply applies the x-corral object to the task. A nil extension only marks memory and estimate as missing.
func (x *extension) apply(t *workflow.Task) error {
	t.MemoryMiB, t.Estimate = notGiven, notGiven
	if x == nil {
		return nil
	}
	if x.MemoryMiB != nil {
		if t.MemoryMiB = *x.MemoryMiB; t.MemoryMiB < 0 {
			return fmt.Errorf("memory_mib: %d is negative", t.MemoryMiB)
		}
	}
	if x.GPUs < 0 || x.DiskMiB < 0 {
		return fmt.Errorf("gpus: %d or disk_mib: %d is negative", x.GPUs, x.DiskMiB)
	}
	if x.Retries != nil && *x.Retries < 0 {
		return fmt.Errorf("retries: %d is negative", *x.Retries)
	}
	if x.Estimate != nil {
		t.Estimate = time.Duration(*x.Estimate)
	}
	if t.ID != "" { // otherwise the id that the format requires is missing
		t.ID = cmp.Or(x.ID, t.ID)
	}
	t.GPUs, t.DiskMiB, t.Instant = x.GPUs, x.DiskMiB, x.Instant
	t.Retries, t.Timeout, t.Env = x.Retries, time.Duration(x.Timeout), x.Env
	t.Stdin, t.Stdout, t.Stderr = x.Stdin, x.Stdout, x.Stderr
	t.Names, t.Control = x.Names, x.Control.read()
	return nil
}

// mebibytes converts bytes to mebibytes, rounded up.
func mebibytes(b int64) int {
	return int((b >> 20) + min(1, b&(1<<20-1)))
}
