package executor

import (
	"context"
	"strconv"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/ptrace"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// TraceFile is where the trace of an attempt is, if it was traced.
const TraceFile = "trace.json"

// startTraced is startProcess of a process that is watched with all that it starts. A goroutine has the tracer's thread
// until then. What is left when the process has ended, daemons too, is killed: it could not go on without its tracer.
//
// Where nobody may trace, the process is started without: a task is not to fail for that, and what measured it says so.
func startTraced(path string, argv []string, attr *syscall.ProcAttr, how string) (*process, error) {
	mode := trace.Processes
	if how == corral.TraceIO {
		mode = trace.IO
	}
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{traced: make(chan ptrace.Result, 1)}
	started := make(chan error, 2)
	go func() {
		defer close(p.traced)
		r, err := ptrace.Run(context.Background(), ptrace.Command{
			Path: path, Argv: argv, Attr: *attr, Mode: mode, Alone: true,
			Started: func(pid int) { p.pid = pid; started <- nil }, Ended: p.ended,
		})
		if err != nil {
			started <- err
			return
		}
		p.traced <- r
	}()
	err := <-started
	if corral.KindOf(err) == corral.Forbidden {
		return startProcess(path, argv, attr)
	}
	return p, err
}

// ended is told by the tracer that the process has ended and is not reaped yet, and does what wait does then.
func (p *process) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	p.gone = true // nobody but the tracer can reap it, which does so now
}

// waitTraced is wait of a process that is traced.
func (p *process) waitTraced() ending {
	r, ok := <-p.traced
	if !ok {
		return ending{status: syscall.WaitStatus(syscall.SIGKILL)} // unreachable: the kernel refuses no wait
	}
	end := ending{status: r.Status, used: usageOf(r.Used, p.moved), trace: &r.Trace}
	addTrace(&end.used, end.trace)
	return end
}

// addTrace adds what only a trace tells: processes that nobody waited for, the memory of all together, which is an
// upper bound, and bytes: in mode io those of sockets, too, and of processes that have ended, which some kernels (6.18)
// tell root alone.
func addTrace(u *execution.Usage, t *trace.Trace) {
	if cpu := t.CPU(); cpu > u.UserCPU+u.SysCPU {
		u.UserCPU += cpu - u.UserCPU - u.SysCPU
	}
	if peak := t.Peak() >> 10; peak > u.MaxRSSKiB || peak > 0 && t.Whole() {
		u.MaxRSSKiB = peak // without the worker's own, of which a process is a copy at first
	}
	sum := t.Bytes()
	u.ReadBytes, u.WrittenBytes = max(u.ReadBytes, sum.Read), max(u.WrittenBytes, sum.Written)
	u.MeasuredBy += execution.ByTrace
}

// leaveTrace writes the trace of an attempt to its directory. That it cannot be written is no reason to fail.
func (e *Attempt) leaveTrace(t *trace.Trace) {
	if t == nil {
		return
	}
	t.Run, t.ID = "run:"+strconv.FormatInt(int64(e.job.Run), 10), e.task.ID+"."+strconv.Itoa(e.task.Attempt)
	if line, err := t.Line(); err == nil {
		_ = e.dir.write(TraceFile, line)
	}
}
