package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Hide keeps other processes of this account, as tasks are, from reading this process's memory, environment and open
// files, and from tracing it. Only root may still do that. An exec undoes it, so each program that gets the secret of
// the pilot calls Hide before it has it; and so tasks are not hidden. It leaves no core dump, either.
func Hide() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
