package ptrace

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	otherABI   = 0x40000000 // x32: numbers from here on belong to calls with 32-bit arguments
)

// olderCalls are calls that newer architectures do not have.
var olderCalls = map[uint64]call{unix.SYS_OPEN: opens("open"), unix.SYS_CREAT: opens("creat")}
