package ptrace

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// enterKernel is the instruction svc #0.
var enterKernel = []byte{0x01, 0x00, 0x00, 0xd4}

// generalRegisters is NT_PRSTATUS.
const generalRegisters = 1

// registers holds the registers of a tracee. A 32-bit program has fewer.
type registers struct {
	r    unix.PtraceRegsArm64
	size int
}

func (r *registers) get(tid int) error {
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&r.r)), Len: uint64(unsafe.Sizeof(r.r))}
	err := request(unix.PTRACE_GETREGSET, tid, generalRegisters, uintptr(unsafe.Pointer(&v)))
	r.size = int(v.Len)
	return err
}

func (r *registers) put(tid int) error { return unix.PtraceSetRegSetArm64(tid, generalRegisters, &r.r) }

func (r *registers) native() bool     { return r.size == int(unsafe.Sizeof(r.r)) }
func (r *registers) program() uintptr { return uintptr(r.r.Pc) }
func (r *registers) stack() uintptr   { return uintptr(r.r.Sp) }

// prepare sets the registers for a call.
func (r *registers) prepare(nr, a, b, c uint64) {
	r.r.Regs[8] = nr
	r.r.Regs[0], r.r.Regs[1], r.r.Regs[2], r.r.Regs[3] = a, b, c, 0
	r.r.Regs[4], r.r.Regs[5] = 0, 0
}
