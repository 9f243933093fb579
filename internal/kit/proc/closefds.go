package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// CloseOnExec marks all open files except standard input, output and error to be closed in every program that this
// process starts from now on. The files remain open in the process itself.
func CloseOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // no effect on a file that has been closed, such as the list itself
		}
	}
	return nil
}
