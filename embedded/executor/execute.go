// Package executor runs the tasks of jobs as processes of this machine, each in a directory of its own below its run's.
//
// A run's directory D has D/data, which all its tasks share, and D/tasks, with a directory ID.ATTEMPT for each attempt.
// A task sees its inputs there as symbolic links into D/data, and writes where it likes in its directory. Its outputs
// are renamed into D/data when it has ended well: so an output is there whole or not at all, whatever kills the task.
// Each publication asks whether the worker may still publish, since another worker may have the job by then. What the
// task printed, and a record of how it ended, stay in its directory. Of a packed job, a task that is done and left
// nothing but its outputs has no directory any more (pack.go): its result says as much as its record would.
//
// The task's process leads a process group, which is killed with it: nothing of a task outlives it but what left its
// group, and that is the supervisor's to find.
//
// It is meant for tasks of a millisecond: one fork, one wait and plain system calls for each, no goroutine, no pipe.
// What can be prepared once is: the base of the environment, the paths of commands, the directories for temporary
// files.
package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// An Executor runs tasks as processes of this machine.
type Executor struct {
	worker  string // its id
	host    string
	base    []string // environment of every task
	null    int      // /dev/null
	scratch scratch
	tasks   opened         // of the run whose tasks it has
	groups  *cgroup.Parent // nil: tasks are in no groups of their own
	watch   memoryWatch

	mu      sync.Mutex        // guards what follows
	paths   map[string]string // of commands, by PATH and name
	threads map[int][]string  // :: cpus → variables that say how many threads libraries may have
}

// An Attempt is one task on its way. Its guard says why it was killed, if it was.
type Attempt struct {
	x      *Executor
	job    *execution.Job
	task   *execution.Task
	dir    TaskDir
	tmp    tmpDir  // for its temporary files; none: it makes them in dir
	gpus   *string // those that it sees, as a list; nil: nothing is said of them
	memory memoryLimit
	res    execution.Result

	mu         sync.Mutex // guards what follows
	proc       *process
	cause      execution.Status // why it was killed; a timeout is a failure
	why        string
	overMemory int64 // bytes that it used when it was killed for them; 0: it was not
	overTime   bool  // it was killed for its time limit
}

// New returns an executor of the worker with this id; scratch is a directory of it alone, for its tasks' TMPDIRs,
// or empty: they are in their own directories then.
func New(worker, host, scratchDir string) (*Executor, error) {
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	return &Executor{
		worker: worker, host: host, null: null, scratch: scratch{base: scratchDir}, tasks: opened{fd: unix.AT_FDCWD},
		base: BaseEnv(), paths: map[string]string{}, threads: map[int][]string{},
	}, nil
}

// Close frees what New opened.
func (x *Executor) Close() {
	_ = syscall.Close(x.null)
	x.Rest()
	x.scratch.close()
	if x.groups != nil {
		x.groups.Close()
	}
}

// Rest lets go of what is kept open between tasks. It is called when there are none to come: a file system may be meant
// to be unmounted.
func (x *Executor) Rest() { x.tasks.rest() }

// Begin prepares the record of an attempt.
func (x *Executor) Begin(job *execution.Job, task *execution.Task) *Attempt {
	return &Attempt{x: x, job: job, task: task, res: execution.Result{
		Key: job.Key(), Index: task.Index, Attempt: task.Attempt, Exit: -1, Worker: x.worker,
	}}
}

// Run runs the task to its end, publishes its outputs for as long as fresh allows it, and leaves its
// record in its directory, unless the job is packed and that has nothing else worth keeping.
func (e *Attempt) Run(fresh func() bool) execution.Result {
	began := time.Now()
	e.res.StartedAt = began.UTC()
	tasks := e.x.tasks.take(e.job.Dir + "/" + TasksDir)
	defer e.x.tasks.give(tasks)
	var err error
	if e.dir, err = taskDir(e.job.Dir, e.task, tasks); err == nil {
		err = e.prepareAndWait()
	}
	if err == nil {
		err = e.dir.Publish(fresh)
	}
	e.conclude(err)
	e.res.EndedAt = e.res.StartedAt.Add(time.Since(began))
	if !e.job.Pack || e.res.Status != execution.Done || !e.dir.Pack() {
		e.record()
	}
	return e.res
}

// prepareAndWait makes the task's directory, runs its process to the end, and notes what it used. An error is why the
// task is not done, in words for its user.
func (e *Attempt) prepareAndWait() error {
	inputs, err := e.dir.furnish(e.job.CopyInputs)
	if err != nil {
		return err
	}
	e.tmp = e.x.scratch.take()
	defer func() { e.x.scratch.give(e.tmp) }()
	if err := e.start(); err != nil {
		return err
	}
	if e.task.Timeout > 0 {
		t := time.AfterFunc(e.task.Timeout, e.timeOut)
		defer t.Stop()
	}
	e.x.watch.add(e)
	end := e.x.grouped(e.proc, e.memory.bytes())
	e.x.watch.drop(e)
	e.refused(end)
	e.leaveTrace(end.trace)
	e.res.Changed = e.dir.changed(inputs)
	status := end.status
	e.res.Usage = end.used
	if !status.Signaled() {
		e.res.Exit = status.ExitStatus()
	} else {
		e.res.Signal = signalName(status.Signal())
	}
	switch {
	case e.killed():
		return errKilled // whatever the task made of the signal
	case status.Signaled():
		return errors.New("killed by " + e.res.Signal)
	case e.res.Exit != 0:
		return fmt.Errorf("exit status %d", e.res.Exit)
	}
	e.dir.dropCopies(inputs)
	return nil
}

// errKilled says that the attempt was stopped; its cause says why.
var errKilled = errors.New("killed")

// killed reports whether the attempt was stopped. It outweighs the exit status: a task may end well on a signal that
// was to stop it.
func (e *Attempt) killed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause != ""
}

// start starts the process, unless the attempt was stopped already. The lock is held from that question until the
// process is known, so that a Stop either finds the process or keeps it from starting.
func (e *Attempt) start() error {
	if len(e.task.Argv) == 0 {
		return errors.New("the task has no command")
	}
	in, out, serr, err := e.dir.stdio(e.x.null)
	if err != nil {
		return err
	}
	defer closeStdio(e.x.null, in, out, serr)
	env, path := e.environ()
	command, err := e.x.program(e.task.Argv[0], path)
	if err != nil {
		return err
	}
	dir := cmp.Or(e.task.Dir, e.dir.Path)
	if err := usable(e.task.Dir); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != "" {
		return errKilled
	}
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Files: []uintptr{uintptr(in), uintptr(out), uintptr(serr)}}
	if e.job.Trace != "" {
		e.proc, err = startTraced(command, e.task.Argv, attr, e.job.Trace)
	} else {
		e.proc, err = startProcess(command, e.task.Argv, attr)
	}
	if err != nil {
		e.x.forget(e.task.Argv[0], path)
		return fmt.Errorf("command %q cannot be executed: %w", e.task.Argv[0], err)
	}
	return nil
}

// Stop kills the task at once, whether or not it has started. The first cause counts.
func (e *Attempt) Stop(cause execution.Status, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == "" {
		e.cause, e.why = cause, why
	}
	if e.proc != nil {
		e.proc.killTree()
	}
}

// End asks the task to end, which may have something to tidy up, and kills it when its grace is over. One that has not
// started never does. The first cause counts; a Stop does not wait for the grace.
func (e *Attempt) End(cause execution.Status, why string) { e.end(cause, why, false) }

// timeOut ends a task whose time is over, which is its own failure.
func (e *Attempt) timeOut() {
	e.end(execution.Failed, "timed out after "+e.task.Timeout.String(), true)
}

func (e *Attempt) end(cause execution.Status, why string, overTime bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != "" {
		return // it ends already
	}
	e.cause, e.why, e.overTime = cause, why, overTime
	if e.proc != nil {
		e.proc.terminate(cmp.Or(e.task.Grace, termGrace))
	}
}

// conclude sets the status: the reason that stopped the task, a failure, or done.
func (e *Attempt) conclude(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case errors.Is(err, ErrStale):
		e.res.Status, e.res.Reason = execution.Cut, wire.Clip(err.Error())
	case errors.Is(err, errKilled):
		e.res.Status, e.res.Reason = e.cause, wire.Clip(e.why)
		if e.overTime {
			e.res.Cause = execution.OverTime
		}
		if e.overMemory > 0 {
			e.res.Cause, e.res.MaxRSSKiB = execution.OverMemory, max(e.res.MaxRSSKiB, e.overMemory>>10)
		}
	case err != nil:
		e.res.Status, e.res.Reason = execution.Failed, wire.Clip(err.Error())
	default:
		e.res.Status = execution.Done
	}
}

// A Record is what RecordFile says of an attempt.
type Record struct {
	Task string   `json:"task"`
	Host string   `json:"host,omitempty"`
	Argv []string `json:"argv"`
	*execution.Result
}

// record leaves what is known in the attempt's directory, for people. That it cannot be written is no reason for a task
// to fail.
func (e *Attempt) record() {
	if e.dir.Path == "" {
		return
	}
	b, err := json.Marshal(Record{e.task.ID, e.x.host, e.task.Argv, &e.res})
	if err == nil {
		err = e.dir.write(RecordFile, append(b, '\n'))
	}
	if err != nil && e.res.Reason == "" {
		e.res.Reason = wire.Clip("its record could not be written: " + err.Error())
	}
}

// RunUntil runs a task, which is cut off when ctx ends. It may have its part of slot, which is where the job runs.
func (x *Executor) RunUntil(
	ctx context.Context, slot corral.Resources, job *execution.Job, task *execution.Task,
) execution.Result {
	e := x.Begin(job, task)
	e.LimitMemory(job.MemoryLimit(slot))
	e.passGPUs()
	stop := context.AfterFunc(ctx, func() { e.Stop(execution.Cut, "its worker had to leave: it was asked to") })
	defer stop()
	return e.Run(func() bool { return true })
}

// Fail ends an attempt that could not be started.
func (e *Attempt) Fail(why string) execution.Result {
	e.res.StartedAt = time.Now().UTC()
	e.res.EndedAt, e.res.Status, e.res.Reason = e.res.StartedAt, execution.Failed, wire.Clip(why)
	return e.res
}
