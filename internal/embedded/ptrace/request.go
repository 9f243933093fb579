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

// options are the options with which each tracee is seized; its children inherit them.
const options = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP |
	unix.PTRACE_O_EXITKILL

// request calls ptrace(2). The call never blocks, so Go's scheduler need not be informed.
func request(req, tid int, addr, data uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// message returns the message of an event: the new thread after a fork, the former thread id after an exec.
func message(tid int) (int, error) {
	var msg uint64
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETEVENTMSG, uintptr(tid), 0,
		uintptr(unsafe.Pointer(&msg)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(msg), nil
}

// A callInfo is struct ptrace_syscall_info. The meaning of its fields depends on op.
type callInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_, _ uint64    // the address of the call, and the stack pointer
	nr   uint64    // atEntry, atSeccomp; atExit: the return value
	args [6]uint64 // atEntry, atSeccomp; atExit: the first byte is 1 if the return value is an error
	_    uint64
}

// Values of op.
const (
	atEntry   = 1
	atExit    = 2
	atSeccomp = 3
)

// callOf returns the call at which a tracee has stopped, or its result.
func callOf(tid int, info *callInfo) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(*info),
		uintptr(unsafe.Pointer(info)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// A news is an event that waitid(2) reports for a child or tracee.
type news struct {
	tid    int
	ended  bool
	signal int // for a stop: the signal, or SIGTRAP with 0x80 for a call
	event  int // for a stop: PTRACE_EVENT_…, or 0
}

// next waits for an event of any tracee of this thread without collecting it: the kernel's counters for an ended tracee
// are available only until the event is collected. of is P_ALL, or P_PID for the tracee with this id. more is false if
// no tracee is left.
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
	// The union in siginfo_t follows three words and, on 64-bit systems, padding: si_pid, si_uid, si_status.
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

// collect reaps a tracee that has ended, or consumes a stop.
func collect(tid int) (status syscall.WaitStatus, used syscall.Rusage) {
	for {
		_, err := syscall.Wait4(tid, &status, unix.WALL|unix.WNOTHREAD|unix.WUNTRACED, &used)
		if err != syscall.EINTR {
			return status, used
		}
	}
}

// onOwnThread runs do on a thread that has no other tracees or children. It rejects a thread that has children, because
// a wait for all children would reap them instead of the code that forked them. It also rejects the process's first
// thread, which inherits orphaned children. A rejected thread stays locked until a suitable one is found, so that Go
// must provide another.
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

// quieten stops the kernel from sending SIGCHLD to this process when a child stops. Go has a handler for the signal,
// which would run for each stop of a tracee, in any thread, and take as long as all other work. The end of a child is
// still signalled.
var quieten = sync.OnceFunc(func() {
	var action struct { // struct sigaction, as the kernel defines it on both architectures
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

// yamaFile specifies who may trace which processes, if the kernel includes the Yama module.
const yamaFile = "/proc/sys/kernel/yama/ptrace_scope"

// Permitted returns an error of kind Forbidden, with the reason, if tracing is not permitted on this machine, as in
// some containers. Whether a particular program may be traced becomes known only when it is started.
func Permitted() error {
	if text, err := os.ReadFile(yamaFile); err == nil {
		switch scope := strings.TrimSpace(string(text)); {
		case scope == "3", scope == "2" && unix.Geteuid() != 0:
			return corral.Errorf(corral.Forbidden, "tracing is not permitted on this machine: %s is %s", yamaFile,
				scope)
		}
	}
	// A thread cannot be its own tracee: if the call is permitted, it returns ESRCH.
	if err := request(unix.PTRACE_CONT, unix.Gettid(), 0, 0); !errors.Is(err, unix.ESRCH) {
		return corral.Errorf(corral.Forbidden, "tracing is not permitted on this machine: ptrace: %w", err)
	}
	return nil
}
