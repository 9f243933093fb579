package ptrace

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_AARCH64
	otherABI   = 1 << 32 // there is no other ABI
)

// olderCalls is empty on this architecture.
var olderCalls = map[uint64]call{}
