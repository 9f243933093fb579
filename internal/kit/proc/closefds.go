package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// CloseOnExec marks all that is open beyond standard input, output and error as to be closed in every program that
// this process starts from now on. The process itself still has it.
func CloseOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // of one that is closed by now, as that of the list itself: nothing
		}
	}
	return nil
}
