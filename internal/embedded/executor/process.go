package executor

import (
	"cmp"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/ptrace"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// termGrace is the default time between SIGTERM and SIGKILL, for tasks without a grace period of their own.
const termGrace = 2 * time.Second

// A process is a running task: the leader of its own process group.
type process struct {
	pid    int
	traced chan ptrace.Result // receives the tracer's result when the process has ended; nil: it is not traced
	moved  transfer           // bytes read and written, set when it has ended

	mu    sync.Mutex    // guards the fields below
	gone  bool          // reaped: another process may have its pid by now
	group *cgroup.Group // the group that it is in; nil: none of its own
	force *time.Timer   // kills it if it ignores SIGTERM; nil: it was not asked to end
	stray []stray       // processes that had left its process group when it was asked to end
}

// A stray is a descendant of a task's process that has left the process's group. After the task's process has ended,
// only this record shows which task the stray belonged to.
type stray struct {
	pid   int
	began time.Duration // distinguishes it from a later process with the same pid
}

// An ending describes how a process ended and what resources it used.
type ending struct {
	status  syscall.WaitStatus
	used    execution.Usage
	refused bool         // the kernel killed one of its processes because its group reached the memory limit
	trace   *trace.Trace // nil: it was not traced
}

// startProcess starts argv in dir with files as its standard input, output and error. It is designed to be cheap: it
// uses no goroutine, and no pipe except one that reports whether exec succeeded. The kernel kills the process if this
// process dies first (strictly, if its thread does, but Go keeps threads); the worker's supervisor handles the rest of
// the group.
func startProcess(path string, argv []string, attr *syscall.ProcAttr) (*process, error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &process{pid: pid}, nil
}

// wait waits for the process to end and kills the rest of its group. It kills the group before it reaps the leader:
// until the leader is reaped, no other group can have the same number.
func (p *process) wait() ending {
	if p.traced != nil {
		return p.waitTraced()
	}
	for errors.Is(unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), syscall.EINTR) {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	var status syscall.WaitStatus
	var used syscall.Rusage
	for {
		if _, err := syscall.Wait4(p.pid, &status, 0, &used); err != syscall.EINTR {
			break
		}
	}
	p.gone = true
	return ending{status: status, used: usageOf(used, p.moved)}
}

// endLocked kills what is left of a process that has ended, and reads the values that /proc provides only until the
// process is reaped.
func (p *process) endLocked() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.killStraysLocked()
	p.moved = transferred(p.pid)
}

// kill kills the group and strays, which are descendants of the process. It returns false if the process was reaped.
// Before that, no other process can have its pid, so all processes found below it are really its descendants.
func (p *process) kill(strays []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	for _, pid := range append([]int{-p.pid}, strays...) { // without the group, a shell would continue
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
	}
	return true
}

// killTree kills the group and all other descendants of the process: a daemon that a task has started has left the
// group. Finding such daemons requires a scan of all processes on the machine, so this is done only for tasks that are
// stopped early.
func (p *process) killTree() {
	if !p.reaped() {
		p.kill(p.strays())
	}
}

func (p *process) reaped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// strays returns the descendants of the process that have left its group.
func (p *process) strays() (pids []int) {
	for _, q := range proc.Tree(proc.All(), p.pid) {
		if q.Group != p.pid {
			pids = append(pids, q.ID)
		}
	}
	return pids
}

// terminate asks the process and its descendants to end, and kills the remaining ones when the process has ended or the
// grace period is over. Stopped processes are continued, because they could not handle the signal otherwise. Repeated
// calls have no effect.
func (p *process) terminate(grace time.Duration) {
	pids := p.strays()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.force != nil {
		return
	}
	p.force = time.AfterFunc(grace, p.killTree)
	for _, pid := range pids {
		if began, ok := proc.Began(pid); ok {
			p.stray = append(p.stray, stray{pid, began})
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		for _, pid := range append(pids, -p.pid) {
			_ = syscall.Kill(pid, sig) // it may have ended just now
		}
	}
}

// killStraysLocked kills the remaining descendants of a process that was asked to end: the processes that had left its
// group by then, and their descendants.
func (p *process) killStraysLocked() {
	if p.force != nil {
		p.force.Stop()
	}
	for _, s := range p.stray {
		if began, ok := proc.Began(s.pid); !ok || began != s.began {
			continue
		}
		for _, q := range proc.Tree(proc.All(), s.pid) {
			_ = syscall.Kill(q.ID, syscall.SIGKILL) // it may have ended just now
		}
	}
}

// signalName returns the usual name of a signal.
func signalName(s syscall.Signal) string {
	return cmp.Or(unix.SignalName(s), "signal "+strconv.Itoa(int(s)))
}
