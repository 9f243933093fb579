package ptrace

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A Command is what is to be run, and how.
type Command struct {
	Path string // of the program; Argv[0] is only what it is called
	Argv []string
	Attr syscall.ProcAttr
	Mode trace.Mode // empty: processes

	// Started is called with the process's id before it runs its first instruction; nil: nobody is interested.
	Started func(pid int)
	// Ended is called when the process has ended, while its id is still its own; nil: nobody is interested.
	Ended func()
	// Alone: what is still there when the process has ended is killed. Otherwise a Run waits for it.
	Alone bool
	// Unfiltered: calls are stopped at without a filter, as where none can be set.
	Unfiltered bool
}

// A Result is what became of a command.
type Result struct {
	Trace  trace.Trace // without run and id, which are its caller's to give
	Status syscall.WaitStatus
	Used   syscall.Rusage // as wait4(2) tells it of the command's process
}

// A tracer is one Run.
type tracer struct {
	command *Command
	root    int
	began   time.Time
	plain   bool // every call is stopped at
	result  Result
	roster  roster
	tree    *tree
	books   books
	proc    reader
	stops   int64
}

// Run runs a command until it and all that it has started have ended; when ctx ends, all of it is killed. An error is
// of kind Forbidden if tracing is not permitted; otherwise it says why the command could not be started.
func Run(ctx context.Context, c Command) (result Result, err error) {
	c.Mode = cmp.Or(c.Mode, trace.Processes)
	x := &tracer{command: &c, tree: newTree(), books: books{ledger: newLedger()}}
	stop := context.AfterFunc(ctx, x.roster.close)
	defer stop()
	onOwnThread(func() { result, err = x.run() })
	return result, err
}

// run is Run, on the thread that it needs.
func (x *tracer) run() (Result, error) {
	quieten()
	before := threadTime()
	if err := x.start(); err != nil {
		return Result{}, err
	}
	for {
		n, more, err := next(unix.P_ALL, 0)
		if err != nil { // unreachable: the kernel refuses no such wait, but nothing must stay stopped
			x.roster.close()
		}
		if err != nil || !more {
			x.finish(threadTime() - before)
			return x.result, err
		}
		if n.ended {
			x.ended(n.tid)
			continue
		}
		x.stops++
		x.stopped(n)
	}
}

// threadTime is what this thread has had of cpus.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	_ = syscall.Getrusage(thisThread, &used) // it cannot fail for oneself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// now is the time since the trace began.
func (x *tracer) now() time.Duration { return time.Since(x.began) }

// finish writes the trace.
func (x *tracer) finish(spent time.Duration) {
	t := &x.result.Trace
	t.Version, t.Mode, t.Argv = trace.Version, x.command.Mode, clip(x.command.Argv)
	t.Transformation = filepath.Base(cmp.Or(x.command.Argv[0], x.command.Path))
	t.StartedAt = x.began.UTC()
	t.EndedAt = t.StartedAt.Add(x.now())
	t.Outcome = outcome(x.result.Status)
	t.Processes, t.MoreProcs = x.tree.list()
	t.Overhead = trace.Overhead{Stops: x.stops, CPU: spent, By: "none"}
	if t.Mode == trace.IO {
		x.books.settle()
		x.books.ledger.write(t)
		t.Overhead.By = "seccomp"
		if x.plain {
			t.Overhead.By = "syscall"
		}
	}
}

// outcome is how a process ended, by its status.
func outcome(s syscall.WaitStatus) trace.Outcome {
	if s.Signaled() {
		return trace.Outcome{Exit: -1, Signal: unix.SignalName(s.Signal())}
	}
	return trace.Outcome{Exit: s.ExitStatus()}
}

// callStop is the signal of a stop at a call, by PTRACE_O_TRACESYSGOOD.
const callStop = int(unix.SIGTRAP) | 0x80

// stopped deals with a tracee that has stopped, and has it go on.
func (x *tracer) stopped(n news) {
	th := x.thread(n.tid)
	switch n.event {
	case 0:
		if n.signal == callStop {
			x.called(th)
			n.signal = 0
		}
		x.resume(th, n.signal)
		return
	case unix.PTRACE_EVENT_STOP:
		switch unix.Signal(n.signal) {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU: // its process was stopped, and stays so
			_ = request(unix.PTRACE_LISTEN, n.tid, 0, 0)
			return
		}
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		if id, err := message(n.tid); err == nil {
			x.made(th, id, n.event)
		}
	case unix.PTRACE_EVENT_EXEC:
		th = x.executed(n.tid)
	case unix.PTRACE_EVENT_EXIT:
		x.leaving(th)
	case unix.PTRACE_EVENT_SECCOMP:
		x.called(th)
	}
	x.resume(th, 0)
}

// resume has a tracee go on, with a signal if there is one. One that was killed meanwhile is told of later.
func (x *tracer) resume(th *thread, signal int) {
	req := unix.PTRACE_CONT
	if x.plain || th.call != nil {
		req = unix.PTRACE_SYSCALL
	}
	_ = request(req, th.tid, 0, uintptr(signal))
}

// called deals with a stop at a call, or behind one.
func (x *tracer) called(th *thread) {
	var info callInfo
	if callOf(th.tid, &info) != nil {
		return // it was killed
	}
	switch info.op {
	case atEntry, atSeccomp:
		if x.books.begin(th, &info) && th.of.Execs > 0 {
			x.peak(th) // of the program that is replaced
		}
	case atExit:
		x.books.end(th, &info)
	}
}

// thread returns a thread that has stopped. One that is not known is new, and seen before whoever made it has told.
func (x *tracer) thread(tid int) *thread {
	if th := x.tree.threads[tid]; th != nil {
		return th
	}
	pid, parent, ok := x.proc.family(tid)
	if p := x.tree.procs[pid]; ok && pid != tid && p != nil {
		return x.tree.join(p, tid)
	}
	x.fork(tid, parent)
	return x.tree.threads[tid]
}

// fork adds a process that parent has made. It is what its parent is until it executes a program.
func (x *tracer) fork(pid, parent int) {
	p := x.tree.begin(pid, parent, x.now())
	if from := x.tree.procs[parent]; from != nil {
		p.Argv = from.Argv
	}
	x.roster.add(pid)
}

// made deals with a thread or process that a thread says it has made.
func (x *tracer) made(by *thread, id, event int) {
	if th := x.tree.threads[id]; th != nil && th.tid != th.of.ID {
		return // a thread that is known
	}
	if x.tree.procs[id] == nil && x.tree.untold[id] == nil {
		switch {
		case isThread(by.of.ID, id):
			x.tree.join(by.of, id)
			return
		case event == unix.PTRACE_EVENT_CLONE && unix.Kill(id, 0) != nil:
			return // a thread that was killed, and was counted when that was told
		}
		x.fork(id, by.of.ID)
	}
	x.tree.told(by.of, id, event == unix.PTRACE_EVENT_VFORK, x.now())
}

// executed deals with a process that has executed a program. If another thread than its first did so, the kernel has
// it go on only when this stop has been collected: whoever has not heard of it might mean the thread that had the id.
func (x *tracer) executed(pid int) *thread {
	collect(pid)
	former, err := message(pid)
	if err != nil {
		former = pid
	}
	p := x.tree.executed(pid, former, x.now())
	p.Argv = x.proc.argv(pid)
	return x.tree.threads[pid]
}

// leaving deals with a thread that is about to end: what the kernel counts of it is complete but for its clock.
func (x *tracer) leaving(th *thread) {
	read, written := x.proc.transferred(th.of.ID, th.tid)
	th.of.ReadBytes += read
	th.of.WrittenBytes += written
	if x.tree.leaving(th) {
		x.peak(th)
	}
}

// peak notes what a process has had of memory until now, unless that is its parent's.
func (x *tracer) peak(th *thread) {
	if th.of.borrowed {
		return
	}
	resident, virtual, ok := x.proc.peaks(th.of.ID, th.tid)
	if !ok {
		return
	}
	p := th.of
	p.PeakBytes, p.VirtualBytes = max(p.PeakBytes, resident), max(p.VirtualBytes, virtual)
	p.PeakBy = trace.ByHighWater
}

// ended deals with a thread that has ended, and with its process if that has.
func (x *tracer) ended(tid int) {
	if x.tree.threads[tid] == nil { // it was killed before it stopped for the first time
		th := x.thread(tid)
		th.of.Unwatched = th.of.ID == tid
	}
	user, sys := time.Duration(0), time.Duration(0)
	if x.tree.procs[tid] != nil {
		user, sys = cpuTime(tid)
	}
	if tid == x.root && x.command.Ended != nil {
		x.command.Ended()
	}
	at := x.now()
	x.roster.remove(tid)
	status, used := collect(tid)
	if p := x.tree.ended(tid, at); p != nil {
		p.UserCPU, p.SysCPU = user, sys
		p.Outcome = outcome(status)
		if p.PeakBy == "" && !p.borrowed && used.Maxrss > 0 {
			p.PeakBytes, p.PeakBy = used.Maxrss<<10, trace.ByRusage
		}
	}
	if tid != x.root {
		return
	}
	x.result.Status, x.result.Used = status, used
	if x.command.Alone {
		x.roster.close()
	}
}

// A roster has the ids of the processes that have not been collected, for others than the tracer's thread to kill them:
// until then no other process can have such an id.
type roster struct {
	mu      sync.Mutex // guards what follows
	pids    map[int]bool
	closing bool // what is there is killed, and what appears yet
}

func (r *roster) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = map[int]bool{}
	}
	r.pids[pid] = true
	if r.closing {
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended just now
	}
}

func (r *roster) remove(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
}

// close kills all.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	for pid := range r.pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
