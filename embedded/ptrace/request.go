package ptrace

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
)

// options are what each tracee is seized with, and what its children inherit.
const options = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP |
	unix.PTRACE_O_EXITKILL

// request is ptrace(2). A call of it never blocks, so Go's scheduler need not know of it.
func request(req, tid int, addr, data uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// message returns what an event has to tell: the new thread of a fork, the former one of an exec.
func message(tid int) (int, error) {
	var msg uint64
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETEVENTMSG, uintptr(tid), 0,
		uintptr(unsafe.Pointer(&msg)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(msg), nil
}

// A callInfo is struct ptrace_syscall_info. What its words are depends on op.
type callInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_, _ uint64    // where it was called, and the stack
	nr   uint64    // atEntry, atSeccomp; atExit: what was returned
	args [6]uint64 // atEntry, atSeccomp; atExit: the first byte says whether that is an error
	_    uint64
}

// What op says of a stop.
const (
	atEntry   = 1
	atExit    = 2
	atSeccomp = 3
)

// callOf returns what a tracee that has stopped at a call calls, or has got back.
func callOf(tid int, info *callInfo) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(*info),
		uintptr(unsafe.Pointer(info)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// A news is what waitid(2) tells of a child or tracee.
type news struct {
	tid    int
	ended  bool
	signal int // of a stop: the signal, or SIGTRAP with 0x80 for a call
	event  int // of a stop: PTRACE_EVENT_…, or 0
}

// next waits for news of any tracee of this thread and leaves it to be collected: of one that has ended, the kernel's
// counters are there until then. of is P_ALL, or P_PID for the one with this id. more is false if there is none left.
func next(of, id int) (n news, more bool, err error) {
	var info unix.Siginfo
	for {
		err = unix.Waitid(of, id, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.ECHILD) {
		return news{}, false, nil
	}
	if err != nil {
		return news{}, false, err
	}
	// The union of siginfo_t begins behind three words and, with 64 bits, padding: si_pid, si_uid, si_status.
	fields := (*[3]int32)(unsafe.Add(unsafe.Pointer(&info), 16))
	n.tid = int(fields[0])
	switch status := int(fields[2]); info.Code {
	case cldExited, cldKilled, cldDumped:
		n.ended = true
	default:
		n.signal, n.event = status&0xff, status>>8
	}
	return n, true, nil
}

// Values of si_code for SIGCHLD.
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// collect collects a tracee that has ended, or a stop.
func collect(tid int) (status syscall.WaitStatus, used syscall.Rusage) {
	for {
		_, err := syscall.Wait4(tid, &status, unix.WALL|unix.WNOTHREAD|unix.WUNTRACED, &used)
		if err != syscall.EINTR {
			return status, used
		}
	}
}

// onOwnThread has do run on a thread that traces and waits for nobody else. A thread is turned down if it has children,
// which a wait for all would take from whoever forked them there, or if it is the process's first one, which inherits
// the children of others that end. It stays locked until a better one is found, so that Go has to offer another.
func onOwnThread(do func()) {
	done := make(chan struct{})
	var try func()
	try = func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() != unix.Getpid() && childless() {
			defer close(done)
			do()
			return
		}
		go try()
		<-done
	}
	go try()
	<-done
}

// quieten has the kernel send no SIGCHLD to this process when a child stops. Go has a handler for it, which would run
// for each stop of a tracee, in whichever thread, and take as long as all the rest. That a child ends is still told.
var quieten = sync.OnceFunc(func() {
	var action struct { // struct sigaction, as the kernel has it on both architectures
		handler, flags, restorer, mask uint64
	}
	set := func(to, from unsafe.Pointer) bool {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(to), uintptr(from),
			unsafe.Sizeof(action.mask), 0, 0)
		return errno == 0
	}
	const noStops = 1 // SA_NOCLDSTOP
	if set(nil, unsafe.Pointer(&action)) {
		action.flags |= noStops
		set(unsafe.Pointer(&action), nil)
	}
})

// childless reports whether this thread has no children and no tracees.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, nil)
	return errors.Is(err, unix.ECHILD)
}

// yamaFile says who may trace whom, where the kernel has that module.
const yamaFile = "/proc/sys/kernel/yama/ptrace_scope"

// Permitted returns an error of kind Forbidden, with the reason, if this machine lets nobody trace, as a container may.
// Whether a program may be traced is known only when it is started.
func Permitted() error {
	if text, err := os.ReadFile(yamaFile); err == nil {
		switch scope := strings.TrimSpace(string(text)); {
		case scope == "3", scope == "2" && unix.Geteuid() != 0:
			return corral.Errorf(corral.Forbidden, "this machine lets nobody trace processes: %s is %s", yamaFile,
				scope)
		}
	}
	// A thread is no tracee of its own: where the call is let through, that is the answer.
	if err := request(unix.PTRACE_CONT, unix.Gettid(), 0, 0); !errors.Is(err, unix.ESRCH) {
		return corral.Errorf(corral.Forbidden, "this machine lets nobody trace processes: ptrace: %w", err)
	}
	return nil
}
