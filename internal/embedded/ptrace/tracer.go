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

// A Command specifies the program to run, and how to run and trace it.
type Command struct {
	Path string // of the program; Argv[0] is only its name
	Argv []string
	Attr syscall.ProcAttr
	Mode trace.Mode // empty: processes

	// Started is called with the process's id before its first instruction; nil: no function is called.
	Started func(pid int)
	// Ended is called when the process has ended but has not been reaped; nil: no function is called.
	Ended func()
	// If Alone is true, processes that remain when the command's process has ended are killed. Otherwise Run waits for
	// them.
	Alone bool
	// If Unfiltered is true, the process stops at all calls, without a filter, as on systems where no filter can be
	// set.
	Unfiltered bool
}

// A Result is the outcome of a command.
type Result struct {
	Trace  trace.Trace // without run and id, which the caller adds
	Status syscall.WaitStatus
	Used   syscall.Rusage // as wait4(2) reports it for the command's process
}

// A tracer holds the state of one Run.
type tracer struct {
	command *Command
	root    int
	began   time.Time
	plain   bool // every call stops
	result  Result
	roster  roster
	tree    *tree
	books   books
	proc    reader
	stops   int64
}

// Run runs a command until its process and all descendants of that process have ended; when ctx ends, all of them are
// killed. An error is of kind Forbidden if tracing is not permitted; otherwise it explains why the command could not be
// started.
func Run(ctx context.Context, c Command) (result Result, err error) {
	c.Mode = cmp.Or(c.Mode, trace.Processes)
	x := &tracer{command: &c, tree: newTree(), books: books{ledger: newLedger()}}
	stop := context.AfterFunc(ctx, x.roster.close)
	defer stop()
	onOwnThread(func() { result, err = x.run() })
	return result, err
}

// run is Run on the thread that Run requires.
func (x *tracer) run() (Result, error) {
	quieten()
	before := threadTime()
	if err := x.start(); err != nil {
		return Result{}, err
	}
	for {
		n, more, err := next(unix.P_ALL, 0)
		if err != nil { // unreachable: such a wait cannot fail, but no process must stay stopped
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

// threadTime returns the CPU time that this thread has used.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	_ = syscall.Getrusage(thisThread, &used) // it cannot fail for the calling thread
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// now returns the time since the trace began.
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

// outcome converts the status of a process.
func outcome(s syscall.WaitStatus) trace.Outcome {
	if s.Signaled() {
		return trace.Outcome{Exit: -1, Signal: unix.SignalName(s.Signal())}
	}
	return trace.Outcome{Exit: s.ExitStatus()}
}

// callStop is the signal of a stop at a call, as set by PTRACE_O_TRACESYSGOOD.
const callStop = int(unix.SIGTRAP) | 0x80

// stopped handles a tracee that has stopped, and resumes it.
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
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU: // its process was stopped, and stays stopped
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

// resume resumes a tracee, and delivers a signal if there is one. If the tracee was killed in the meantime, its end is
// reported later.
func (x *tracer) resume(th *thread, signal int) {
	req := unix.PTRACE_CONT
	if x.plain || th.call != nil {
		req = unix.PTRACE_SYSCALL
	}
	_ = request(req, th.tid, 0, uintptr(signal))
}

// called handles a stop before or after a call.
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

// thread returns a thread that has stopped. An unknown thread is new, and its stop is reported before the event of its
// creator.
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

// fork adds a process that parent has created. The process shares its parent's command line until it executes a
// program.
func (x *tracer) fork(pid, parent int) {
	p := x.tree.begin(pid, parent, x.now())
	if from := x.tree.procs[parent]; from != nil {
		p.Argv = from.Argv
	}
	x.roster.add(pid)
}

// made handles the event that a thread has created a thread or process.
func (x *tracer) made(by *thread, id, event int) {
	if th := x.tree.threads[id]; th != nil && th.tid != th.of.ID {
		return // a known thread
	}
	if x.tree.procs[id] == nil && x.tree.untold[id] == nil {
		switch {
		case isThread(by.of.ID, id):
			x.tree.join(by.of, id)
			return
		case event == unix.PTRACE_EVENT_CLONE && unix.Kill(id, 0) != nil:
			return // a thread that was killed, and was counted when its end was reported
		}
		x.fork(id, by.of.ID)
	}
	x.tree.told(by.of, id, event == unix.PTRACE_EVENT_VFORK, x.now())
}

// executed handles a process that has executed a program. If a thread other than the first executed the program, the
// kernel resumes it only after this stop has been collected: before that, the thread's id might still refer to the
// former first thread.
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

// leaving handles a thread that is about to end: all of the kernel's counters for it are complete except its clock.
func (x *tracer) leaving(th *thread) {
	read, written := x.proc.transferred(th.of.ID, th.tid)
	th.of.ReadBytes += read
	th.of.WrittenBytes += written
	if x.tree.leaving(th) {
		x.peak(th)
	}
}

// peak records a process's peak memory up to now, unless the memory is its parent's.
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

// ended handles a thread that has ended, and its process if that has also ended.
func (x *tracer) ended(tid int) {
	if x.tree.threads[tid] == nil { // it was killed before its first stop
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

// A roster holds the ids of processes that have not been reaped, so that threads other than the tracer's can kill them:
// until a process is reaped, no other process can have its id.
type roster struct {
	mu      sync.Mutex // guards the fields below
	pids    map[int]bool
	closing bool // all processes are killed, including ones added later
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

// close kills all processes.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	for pid := range r.pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
