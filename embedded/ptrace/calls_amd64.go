package ptrace

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	otherABI   = 0x40000000 // x32: numbers from here on, whose arguments have 32 bits
)

// olderCalls are those that newer architectures leave to others.
var olderCalls = map[uint64]call{unix.SYS_OPEN: opens("open"), unix.SYS_CREAT: opens("creat")}
