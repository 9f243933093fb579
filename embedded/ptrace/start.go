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

// start starts the command and has it stand before its first instruction, seized, with its filter; then it goes.
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

// blockSignals keeps signals from this thread, and from the process that it forks until that is given the mask which is
// returned. A signal would stop that process, as a tracee, before it has executed its program; and until it has done so
// this thread stands still in fork (as of vfork) and cannot let it go on. SIGTRAP is what it stops by once it has.
func blockSignals() (before unix.Sigset_t) {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	all.Val[0] &^= 1 << (unix.SIGTRAP - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before) // it cannot fail
	return before
}

// refusal is why a process could not be started: that of tracing if it was not permitted.
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

// take seizes a process that has traced itself until its program was loaded. It is let go as a stopped process, and
// seized before it goes on. If it ends meanwhile, there is nothing to do: it is told of as any other that ends.
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
			return corral.Errorf(corral.Forbidden, "the kernel does not let you trace this program: it may be "+
				"executed, but not read, or it has rights that you have not (ptrace: %w)", err)
		} else if err != nil {
			return fmt.Errorf("taking over a process that is to be traced: %w", err)
		}
	}
	return x.settle(pid)
}

// settle waits until a process that was seized stands where it was asked to, and is not stopped any more. What signals
// it gets meanwhile it has no handlers for: they are ignored or end it.
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
		case n.event == unix.PTRACE_EVENT_STOP: // it stands as a stopped process: it was not woken yet, or again
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
