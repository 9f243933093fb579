package ptrace

import "golang.org/x/sys/unix"

// enterKernel is the instruction syscall.
var enterKernel = []byte{0x0f, 0x05}

// codeSegment64 is the code segment of 64-bit programs.
const codeSegment64 = 0x33

// registers holds the registers of a tracee.
type registers struct{ r unix.PtraceRegs }

func (r *registers) get(tid int) error { return unix.PtraceGetRegs(tid, &r.r) }
func (r *registers) put(tid int) error { return unix.PtraceSetRegs(tid, &r.r) }

func (r *registers) native() bool     { return r.r.Cs == codeSegment64 }
func (r *registers) program() uintptr { return uintptr(r.r.Rip) }
func (r *registers) stack() uintptr   { return uintptr(r.r.Rsp) }

// prepare sets the registers for a call. It also prevents the kernel from restarting an interrupted call.
func (r *registers) prepare(nr, a, b, c uint64) {
	r.r.Rax, r.r.Rdi, r.r.Rsi, r.r.Rdx, r.r.R10, r.r.R8, r.r.R9 = nr, a, b, c, 0, 0, 0
	r.r.Orig_rax = ^uint64(0)
}
