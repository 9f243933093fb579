package ptrace

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter can be set only by the process that it applies to, and must be set before the program begins. So the tracee,
// which has not yet run an instruction, is made to call seccomp(2): its registers are set, an instruction that enters
// the kernel is written to the address where it is about to begin, and both are restored after the call.
//
// Without privileges, a process may set a filter only if it gives up set-user-ID programs (PR_SET_NO_NEW_PRIVS). The
// kernel already ignores these for the tracee of an unprivileged tracer, so nothing is lost.

// errGone reports that a tracee has ended.
var errGone = errors.New("the process has ended")

// setFilter makes a tracee that is about to begin set the filter.
func setFilter(tid int) error {
	program := filter()
	state, err := begin(tid)
	if err != nil {
		return err
	}
	// The filter is placed far below the contents of the stack; the initial stack is larger than that distance.
	const below = 16 << 10
	at := (state.stack() - below) &^ 15
	head := struct {
		n uint16
		_ [6]byte
		p uint64
	}{n: uint16(len(program)), p: uint64(at) + 16}
	err = errors.Join(
		poke(tid, at, unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head))),
		poke(tid, at+16, unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(program)*unix.SizeofSockFilter)),
	)
	if err == nil {
		err = state.set(tid, at)
	}
	if gone := state.restore(tid); gone != nil {
		return gone
	}
	return err
}

// set calls seccomp(2), and calls it again with PR_SET_NO_NEW_PRIVS if required.
func (s *state) set(tid int, program uintptr) error {
	seccomp := func() (int64, error) {
		return s.enter(tid, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uint64(program))
	}
	r, err := seccomp()
	if err == nil && r == -int64(unix.EACCES) {
		if r, err = s.enter(tid, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err == nil && r == 0 {
			r, err = seccomp()
		}
	}
	if err == nil && r != 0 {
		err = fmt.Errorf("setting a filter: %w", unix.Errno(-r))
	}
	return err
}

// A state is the saved state of a tracee, to be restored after an injected call.
type state struct {
	registers
	text []byte // code at the address where it is about to begin
}

// begin saves the state of a tracee, and writes the instruction enterKernel to the address where the tracee is about to
// begin.
func begin(tid int) (*state, error) {
	s := &state{text: make([]byte, len(enterKernel))}
	if err := s.get(tid); err != nil {
		return nil, fmt.Errorf("reading registers: %w", err)
	}
	if !s.native() {
		return nil, errors.New("it is a program for another architecture")
	}
	if _, err := unix.PtracePeekText(tid, s.program(), s.text); err != nil {
		return nil, fmt.Errorf("reading its program: %w", err)
	}
	_, err := unix.PtracePokeText(tid, s.program(), enterKernel)
	return s, err
}

// restore restores the state of a tracee. An error means that the tracee has ended: no other cause is possible.
func (s *state) restore(tid int) error {
	_, err := unix.PtracePokeText(tid, s.program(), s.text)
	if err = errors.Join(err, s.registers.put(tid)); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// enter makes the tracee execute one call, and returns its result.
func (s *state) enter(tid int, nr uint64, a, b, c uint64) (int64, error) {
	r := s.registers
	r.prepare(nr, a, b, c)
	if err := r.put(tid); err != nil {
		return 0, fmt.Errorf("%w: %w", errGone, err)
	}
	for sig := 0; ; {
		if err := request(unix.PTRACE_SYSCALL, tid, 0, uintptr(sig)); err != nil {
			return 0, fmt.Errorf("%w: %w", errGone, err)
		}
		n, more, err := next(unix.P_PID, tid)
		if err != nil {
			return 0, err
		}
		if !more || n.ended {
			return 0, errGone
		}
		sig = 0
		var info callInfo
		switch {
		case n.event == unix.PTRACE_EVENT_EXIT:
			return 0, errGone
		case n.event != 0: // it was stopped or asked to stop, but must not stay stopped before it has begun
		case n.signal != callStop:
			sig = n.signal // its program has no handlers yet: the signal is ignored or ends it
		case callOf(tid, &info) == nil && info.op == atExit:
			return int64(info.nr), nil
		}
	}
}

// poke writes to a tracee's memory.
func poke(tid int, at uintptr, b []byte) error {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMWritev(tid, local, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err == nil && n != len(b) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	return err
}
