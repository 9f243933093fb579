package ptrace

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_AARCH64
	otherABI   = 1 << 32 // there is none
)

// olderCalls are none here.
var olderCalls = map[uint64]call{}
