package step

import (
	"errors"
	"os"
	"syscall"

	"github.com/corral-pilot/corral/internal/kit/proc"
)

// killAll kills the processes that descend from this one, and returns when none is left. All that loses its parent
// becomes this process's child, so nothing of the job is left when this process has no child.
func killAll() {
	// Mostly there is nothing, and one call tells so. To look through the machine's processes takes a hundred times as
	// long, and is done as often as something is left that may have started more meanwhile.
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || pid > 0:
			continue
		case err != nil: // ECHILD
			return
		}
		for _, pid := range below(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now; its number is its own until we wait
		}
		_, _ = syscall.Wait4(-1, nil, 0, nil)
	}
}

// below returns the processes that descend from one, without it.
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
