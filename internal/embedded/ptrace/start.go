package ptrace

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// start starts the command, seizes it before its first instruction, sets its filter, and resumes it.
func (x *tracer) start() error {
	attr := x.command.Attr
	sys := syscall.SysProcAttr{}
	if attr.Sys != nil {
		sys = *attr.Sys
	}
	sys.Ptrace = true
	attr.Sys = &sys
	x.began = time.Now()
	mask := blockSignals()
	pid, err := syscall.ForkExec(x.command.Path, x.command.Argv, &attr)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil)
	if err != nil {
		return refusal(err)
	}
	x.root = pid
	if err := x.take(pid); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		collect(pid)
		return err
	}
	_ = request(unix.PTRACE_SETSIGMASK, pid, unsafe.Sizeof(mask.Val[0]), uintptr(unsafe.Pointer(&mask)))
	x.roster.add(pid)
	p := x.tree.begin(pid, 0, 0)
	p.told, p.Execs, p.Argv = true, 1, clip(x.command.Argv)
	if x.command.Mode == trace.IO {
		x.books.standards(pid)
		x.plain = x.command.Unfiltered || setFilter(pid) != nil
	}
	if x.command.Started != nil {
		x.command.Started(pid)
	}
	x.resume(x.tree.threads[pid], 0)
	return nil
}

// blockSignals blocks signals for this thread, and for the process that it forks until the returned mask is set for
// that process. A signal would stop the process, as a tracee, before it has executed its program; and until it has done
// so, this thread is blocked in fork (as in vfork) and cannot resume the process. SIGTRAP is not blocked: the process
// stops with it after exec.
func blockSignals() (before unix.Sigset_t) {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	all.Val[0] &^= 1 << (unix.SIGTRAP - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before) // it cannot fail
	return before
}

// refusal returns the reason why a process could not be started: the error of Permitted if tracing is not permitted.
func refusal(err error) error {
	if not := Permitted(); not != nil {
		return not
	}
	if status, _ := os.ReadFile("/proc/self/status"); errors.Is(err, unix.EPERM) {
		if tracer, _ := field(status, "\nTracerPid:"); tracer != 0 {
			return corral.Errorf(corral.Forbidden, "process %d traces this one, and all that it starts", tracer)
		}
	}
	return err
}

// take seizes a process that called PTRACE_TRACEME and stopped after its program was loaded. It detaches the process in
// a stopped state, and seizes it before the process continues. If the process ends in the meantime, nothing need be
// done: its end is reported like any other.
func (x *tracer) take(pid int) error {
	n, more, err := next(unix.P_PID, pid)
	if err != nil || !more || n.ended {
		return err
	}
	steps := []func() error{
		func() error { return request(unix.PTRACE_DETACH, pid, 0, uintptr(unix.SIGSTOP)) },
		func() error { return request(unix.PTRACE_SEIZE, pid, 0, options) },
		func() error { return unix.Kill(pid, unix.SIGCONT) },
		func() error { return request(unix.PTRACE_INTERRUPT, pid, 0, 0) },
	}
	for _, step := range steps {
		if err := step(); errors.Is(err, unix.ESRCH) {
			return nil // it was killed
		} else if errors.Is(err, unix.EPERM) {
			return corral.Errorf(corral.Forbidden, "the kernel does not permit you to trace this program: it may be "+
				"executable but not readable, or have rights that you do not have (ptrace: %w)", err)
		} else if err != nil {
			return fmt.Errorf("seizing the process to be traced: %w", err)
		}
	}
	return x.settle(pid)
}

// settle waits until a seized process has stopped as requested, and is no longer in a group stop. The process has no
// handlers for signals that arrive in the meantime: they are ignored or end it.
func (x *tracer) settle(pid int) error {
	for {
		n, more, err := next(unix.P_PID, pid)
		if err != nil || !more || n.ended {
			return err
		}
		signal := 0
		switch {
		case n.event == unix.PTRACE_EVENT_STOP && n.signal == int(unix.SIGTRAP):
			return nil
		case n.event == unix.PTRACE_EVENT_STOP: // group stop: not yet resumed, or stopped again
			_ = unix.Kill(pid, unix.SIGCONT)
			_ = request(unix.PTRACE_INTERRUPT, pid, 0, 0)
		case n.event == unix.PTRACE_EVENT_EXIT:
			return nil
		default:
			signal = n.signal
		}
		if err := request(unix.PTRACE_CONT, pid, 0, uintptr(signal)); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}
