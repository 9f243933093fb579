// Package executor runs the tasks of jobs as processes on this machine, each in its own directory below its run's.
//
// A run's directory D has D/data, which all its tasks share, and D/tasks, with a directory ID.ATTEMPT for each attempt.
// A task finds its inputs in that directory as symbolic links into D/data, and may write anywhere in it. Its outputs
// are renamed into D/data when it has succeeded, so an output is either complete or absent, even if the task is killed.
// Each publication first asks whether this worker may still publish, because the job may already have been assigned to
// another worker. The task's printed output and a record of its end stay in its directory. In a packed job, the
// directory of a successful task that left nothing but its outputs is removed (pack.go): its result contains the same
// information as its record.
//
// The task's process leads a process group, which is killed together with that process: only processes that left the
// group can outlive the task, and the supervisor must find and kill them.
//
// The package is designed for tasks of a millisecond: one fork, one wait and plain system calls for each, without a
// goroutine or a pipe. Everything that can be prepared in advance is prepared only once: the base of the environment,
// the paths of commands, the directories for temporary files.
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
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// An Executor runs tasks as processes of this machine.
type Executor struct {
	worker  string // its id
	host    string
	base    []string // environment of every task
	null    int      // /dev/null
	scratch scratch
	tasks   opened         // of the run whose tasks are running
	groups  *cgroup.Parent // nil: tasks are not put into groups of their own
	watch   memoryWatch

	mu      sync.Mutex        // guards the fields below
	paths   map[string]string // of commands, by PATH and name
	threads map[int][]string  // :: cpus → variables that limit the threads of libraries
}

// An Attempt is one execution of a task. Its mutex guards the process and the reason why the attempt was killed, if it
// was.
type Attempt struct {
	x      *Executor
	job    *execution.Job
	task   *execution.Task
	dir    TaskDir
	tmp    tmpDir  // for its temporary files; empty: they are in dir
	gpus   *string // the GPUs that it sees, as a list; nil: the variable is not set
	memory memoryLimit
	res    execution.Result

	mu         sync.Mutex // guards the fields below
	proc       *process
	cause      execution.Status // why it was killed; a timeout counts as a failure
	why        string
	overMemory int64 // bytes in use when it was killed for exceeding its memory; 0: it was not
	overTime   bool  // it was killed because of its time limit
}

// New returns an executor for the worker with this id. scratchDir is a directory for the TMPDIRs of its tasks, which no
// other worker uses; if scratchDir is empty, each task's TMPDIR is the task's own directory.
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

// Close releases what New opened.
func (x *Executor) Close() {
	_ = syscall.Close(x.null)
	x.Rest()
	x.scratch.close()
	if x.groups != nil {
		x.groups.Close()
	}
}

// Rest closes the descriptors that are kept open between tasks. It is called when no tasks are expected, because a file
// system may have to be unmounted.
func (x *Executor) Rest() { x.tasks.rest() }

// Begin prepares an attempt and its result.
func (x *Executor) Begin(job *execution.Job, task *execution.Task) *Attempt {
	return &Attempt{x: x, job: job, task: task, res: execution.Result{
		Key: job.Key(), Index: task.Index, Attempt: task.Attempt, Exit: -1, Worker: x.worker,
	}}
}

// Run runs the task to its end, publishes its outputs while fresh returns true, and leaves its record in its directory,
// unless the job is packed and the directory contains nothing else worth keeping.
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

// prepareAndWait creates the task's directory, runs its process to the end, and records its resource usage. An error
// explains to the user why the task failed.
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
		return errKilled // however the task handled the signal
	case status.Signaled():
		return errors.New("killed by " + e.res.Signal)
	case e.res.Exit != 0:
		return fmt.Errorf("exit status %d", e.res.Exit)
	}
	e.dir.dropCopies(inputs)
	return nil
}

// errKilled reports that the attempt was stopped; the attempt's fields cause and why contain the reason.
var errKilled = errors.New("killed")

// killed reports whether the attempt was stopped. This overrides the exit status: a task may exit with status 0 after
// the signal that stops it.
func (e *Attempt) killed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause != ""
}

// start starts the process, unless the attempt was already stopped. The lock is held from that check until the process
// is recorded, so that a Stop either finds the process or prevents its start.
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

// Stop kills the task at once, or prevents its start. The first cause counts.
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

// End asks the task to terminate, so that it can clean up, and kills it when its grace period is over. A task that has
// not started is never started. The first cause counts; a Stop does not wait for the grace period.
func (e *Attempt) End(cause execution.Status, why string) { e.end(cause, why, false) }

// timeOut ends a task that has exceeded its time limit, which counts as the task's own failure.
func (e *Attempt) timeOut() {
	e.end(execution.Failed, "timed out after "+e.task.Timeout.String(), true)
}

func (e *Attempt) end(cause execution.Status, why string, overTime bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != "" {
		return // it is already being stopped
	}
	e.cause, e.why, e.overTime = cause, why, overTime
	if e.proc != nil {
		e.proc.terminate(cmp.Or(e.task.Grace, termGrace))
	}
}

// conclude sets the status: the cause if the task was stopped, otherwise failed or done.
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

// A Record is the content of an attempt's RecordFile.
type Record struct {
	Task string   `json:"task"`
	Host string   `json:"host,omitempty"`
	Argv []string `json:"argv"`
	*execution.Result
}

// record writes the result to the attempt's directory, for people to read. A failure to write it does not fail the
// task.
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

// RunUntil runs a task, which is stopped when ctx ends. The task may use its share of slot, the slot in which the job
// runs.
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

// Fail returns the result of an attempt that could not be started.
func (e *Attempt) Fail(why string) execution.Result {
	e.res.StartedAt = time.Now().UTC()
	e.res.EndedAt, e.res.Status, e.res.Reason = e.res.StartedAt, execution.Failed, wire.Clip(why)
	return e.res
}
