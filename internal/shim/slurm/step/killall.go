package step

import (
	"errors"
	"os"
	"syscall"

	"github.com/corral-pilot/corral/internal/kit/proc"
)

// killAll kills the descendants of this process, and returns when none is left. Every orphaned descendant becomes this
// process's child, so nothing of the job is left when this process has no children.
func killAll() {
	// Usually no process is left, which a single call shows. Scanning the machine's processes takes a hundred times as
	// long, and is repeated while processes remain that may have started others in the meantime.
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || pid > 0:
			continue
		case err != nil: // ECHILD
			return
		}
		for _, pid := range below(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have just ended; its pid is not reused until we wait
		}
		_, _ = syscall.Wait4(-1, nil, 0, nil)
	}
}

// below returns the descendants of a process, without the process itself.
func below(root int) (found []int) {
	children := map[int][]int{}
	for _, p := range proc.All() {
		children[p.Parent] = append(children[p.Parent], p.ID)
	}
	found = children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
