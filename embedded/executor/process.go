package executor

import (
	"cmp"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/cgroup"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/proc"
)

// termGrace is how long a task that timed out has after SIGTERM.
const termGrace = 2 * time.Second

// A process is a running task: the leader of a process group of its own.
type process struct {
	pid int

	mu    sync.Mutex    // guards what follows
	gone  bool          // reaped: its number may be another process's by now
	group *cgroup.Group // that it is in; nil: none of its own
}

// An ending is how a process ended, and what it used.
type ending struct {
	status  syscall.WaitStatus
	used    execution.Usage
	refused bool // the kernel killed a process of it rather than give its group more memory
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
	for errors.Is(unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), syscall.EINTR) {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	var status syscall.WaitStatus
	var used syscall.Rusage
	read, written, whole := transferred(p.pid)
	for {
		if _, err := syscall.Wait4(p.pid, &status, 0, &used); err != syscall.EINTR {
			break
		}
	}
	p.gone = true
	return ending{status: status, used: usageOf(used, read, written, whole)}
}

// signal sends sig to the whole group, unless the process is gone.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		_ = syscall.Kill(-p.pid, sig) // it may have ended just now
	}
}

// kill kills the group, and strays that descend from the process; false if it is gone. Until then no other process can
// have its number, so whatever was found below it is its own.
func (p *process) kill(strays []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	for _, pid := range append(strays, -p.pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
	}
	return true
}

// killTree kills the group, and whatever else descends from the process: a daemon that a task has started has left the
// group. To find it takes a look at all processes of the machine, which only a task is worth that is ended early.
func (p *process) killTree() {
	var strays []int
	for _, q := range proc.Tree(proc.All(), p.pid) {
		strays = append(strays, q.ID)
	}
	p.kill(strays)
}

// terminate asks the group to end, and kills it with what has left it after a grace.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	time.AfterFunc(termGrace, p.killTree)
}

// signalName returns the usual name of a signal.
func signalName(s syscall.Signal) string {
	return cmp.Or(unix.SignalName(s), "signal "+strconv.Itoa(int(s)))
}
