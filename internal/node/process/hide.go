package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Hide prevents other processes of this account, including tasks, from reading this process's memory, environment and
// open files, and from tracing it. Only root can still do so. An exec reverts it, so each program that receives the
// pilot's secret must first call Hide; for the same reason tasks are not hidden. Hide also disables core dumps.
func Hide() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
