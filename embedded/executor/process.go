package executor

import (
	"cmp"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/embedded/ptrace"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// termGrace is how long a task has after SIGTERM that says nothing of it.
const termGrace = 2 * time.Second

// A process is a running task: the leader of a process group of its own.
type process struct {
	pid    int
	traced chan ptrace.Result // has what its tracer noted, once it has ended; nil: it has none
	moved  transfer           // what it has read and written, once it has ended

	mu    sync.Mutex    // guards what follows
	gone  bool          // reaped: its number may be another process's by now
	group *cgroup.Group // that it is in; nil: none of its own
	force *time.Timer   // kills it if asking it to end was in vain; nil: it was not asked
	stray []stray       // what had left its process group when it was asked
}

// A stray is a process that descends from a task's and has left its group. Once the task's process has ended nothing
// else tells whose it was.
type stray struct {
	pid   int
	began time.Duration // tells it from a later process of its number
}

// An ending is how a process ended, and what it used.
type ending struct {
	status  syscall.WaitStatus
	used    execution.Usage
	refused bool         // the kernel killed a process of it rather than give its group more memory
	trace   *trace.Trace // nil: it was not traced
}

// startProcess starts argv in dir with files as its standard input, output and error. It is meant to be cheap: no
// goroutine, no pipe but the one that tells whether exec worked. The kernel kills the process should this one die first
// (strictly: should its thread, but Go keeps those); the rest of its group is left to whoever supervises the worker.
func startProcess(path string, argv []string, attr *syscall.ProcAttr) (*process, error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &process{pid: pid}, nil
}

// wait waits for the process to end and kills what is left of its group. It does so before it reaps the leader: until
// then no other group can have its number.
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

// endLocked kills what is left of a process that has ended, and reads what only /proc tells of it, until it is reaped.
func (p *process) endLocked() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.killStraysLocked()
	p.moved = transferred(p.pid)
}

// kill kills the group, and strays that descend from the process; false if it is gone. Until then no other process can
// have its number, so whatever was found below it is its own.
func (p *process) kill(strays []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	for _, pid := range append([]int{-p.pid}, strays...) { // else a shell goes on when what it waits for is killed
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
	}
	return true
}

// killTree kills the group, and whatever else descends from the process: a daemon that a task has started has left the
// group. To find it takes a look at all processes of the machine, which only a task is worth that is ended early.
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

// strays finds what descends from the process and has left its group.
func (p *process) strays() (pids []int) {
	for _, q := range proc.Tree(proc.All(), p.pid) {
		if q.Group != p.pid {
			pids = append(pids, q.ID)
		}
	}
	return pids
}

// terminate asks the process to end, with all that descends from it, and kills what is left when the process has ended,
// or when the grace is over. What was stopped is let go on: it could not hear otherwise. To ask again changes nothing.
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

// killStraysLocked ends what the process has left that was asked to end: those that had left its group by then, with
// what descends from them.
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
