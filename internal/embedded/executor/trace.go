package executor

import (
	"context"
	"strconv"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/ptrace"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// TraceFile is the file with the trace of an attempt, if it was traced.
const TraceFile = "trace.json"

// startTraced is startProcess for a process that is traced with all its descendants. A goroutine occupies the tracer's
// thread until the process has ended. Processes that remain then, daemons included, are killed: they could not continue
// without their tracer.
//
// If tracing is not permitted, the process is started without it: the lack of permission must not make a task fail, and
// the usage record shows how the task was measured.
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

// ended is called by the tracer when the process has ended but has not been reaped, and does the work that wait does at
// this point.
func (p *process) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	p.gone = true // only the tracer can reap it, and does so now
}

// waitTraced is wait for a traced process.
func (p *process) waitTraced() ending {
	r, ok := <-p.traced
	if !ok {
		return ending{status: syscall.WaitStatus(syscall.SIGKILL)} // unreachable: the wait cannot fail
	}
	end := ending{status: r.Status, used: usageOf(r.Used, p.moved), trace: &r.Trace}
	addTrace(&end.used, end.trace)
	return end
}

// addTrace adds the values that only a trace contains: processes that were not waited for; the memory of all processes
// together, which is an upper bound; and bytes. In mode io, these include the bytes of sockets and of ended processes,
// which some kernels (6.18) report only to root.
func addTrace(u *execution.Usage, t *trace.Trace) {
	if cpu := t.CPU(); cpu > u.UserCPU+u.SysCPU {
		u.UserCPU += cpu - u.UserCPU - u.SysCPU
	}
	if peak := t.Peak() >> 10; peak > u.MaxRSSKiB || peak > 0 && t.Whole() {
		u.MaxRSSKiB = peak // excludes the worker's memory, which the process shares until exec
	}
	sum := t.Bytes()
	u.ReadBytes, u.WrittenBytes = max(u.ReadBytes, sum.Read), max(u.WrittenBytes, sum.Written)
	u.MeasuredBy += execution.ByTrace
}

// leaveTrace writes the trace of an attempt to its directory. A failure to write it does not fail the task.
func (e *Attempt) leaveTrace(t *trace.Trace) {
	if t == nil {
		return
	}
	t.Run, t.ID = "run:"+strconv.FormatInt(int64(e.job.Run), 10), e.task.ID+"."+strconv.Itoa(e.task.Attempt)
	if line, err := t.Line(); err == nil {
		_ = e.dir.write(TraceFile, line)
	}
}
