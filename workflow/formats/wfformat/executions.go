package wfformat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// executions are the tasks of workflow.execution as the document lists them. They carry what the format says of a task
// besides its structure, even of one that never ran: the command and the number of cpus. One whose task is known, as in
// every file that has the specification first, is joined with it at once; the others wait.
type executions struct {
	count   int
	joined  []bool // :: task → its execution was found; shorter: not yet
	timed   []bool // :: task → that has a runtime; likewise
	waiting []execution
}

// An execution is one element of that list, and where it stands.
type execution struct {
	execTask
	at workflow.Place
}

// add takes an execution in.
func (x *executions) add(b *workflow.Builder, wf *workflow.Workflow, e execution) error {
	x.count++
	i, ok := b.Index(e.ID)
	if !ok || i < len(x.joined) && x.joined[i] { // a second one is told of when it is known that there are not too many
		x.waiting = append(x.waiting, e)
		return nil
	}
	return x.joinOne(b, wf, i, &e)
}

// joinOne completes a task with what its execution says.
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
		b.Warn(e.at, "execution of task %q: executedAt %q is not a time that is understood", e.ID, e.ExecutedAt)
	}
	wf.Tasks[i].StartedAt = started
	return nil
}

// join completes the tasks, which all have been added, with what their executions say.
func (x *executions) join(b *workflow.Builder, wf *workflow.Workflow) error {
	for k := range x.waiting {
		e := &x.waiting[k]
		i, ok := b.Index(e.ID)
		if !ok {
			return e.at.Errorf("execution of task %q, which the specification does not have", e.ID)
		}
		if err := x.joinOne(b, wf, i, e); err != nil {
			return err
		}
	}
	x.waiting = nil
	for i := range wf.Tasks { // what x-corral did not give follows from what was measured
		t := &wf.Tasks[i]
		if t.MemoryMiB == notGiven {
			t.MemoryMiB = mebibytes(t.MemoryBytes)
		}
		if t.Estimate == notGiven { // a workflow that never ran has runtimes of 0, too
			t.Estimate = t.Runtime
			timed := i < len(x.timed) && x.timed[i]
			t.Instant = (t.Instant || timed && wf.Makespan > 0) && t.Runtime == 0 && !t.Measured()
		}
	}
	return nil
}

// apply gives the task what its execution says. A task runs on whole cpus, so a fraction is rounded up; the time that
// its processes spent on cpus is the measured share of the runtime.
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

// notGiven marks the memory and the estimate that x-corral did not give, until join replaces them. 0 will not do: it
// says that the value is not known, whatever was measured.
const notGiven = -1

// apply gives the task what x-corral says; a nil extension says nothing.
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
	if t.ID != "" { // else it is missing where the format demands it
		t.ID = cmp.Or(x.ID, t.ID)
	}
	t.GPUs, t.DiskMiB, t.Instant = x.GPUs, x.DiskMiB, x.Instant
	t.Retries, t.Timeout, t.Env = x.Retries, time.Duration(x.Timeout), x.Env
	t.Stdin, t.Stdout, t.Stderr = x.Stdin, x.Stdout, x.Stderr
	t.Names, t.Control = x.Names, x.Control.read()
	return nil
}

// mebibytes rounds up.
func mebibytes(b int64) int {
	return int((b >> 20) + min(1, b&(1<<20-1)))
}
