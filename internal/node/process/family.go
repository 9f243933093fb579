package process

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/proc"
)

// sweepGap is the pause between two searches for remaining processes.
const sweepGap = 25 * time.Millisecond

// AdoptOrphans makes this process the parent of every descendant whose own parent dies.
func AdoptOrphans() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// Reap reaps every child that has ended, whether started or adopted by this process, and returns the statuses by
// process id. No other code in this process may wait for a child.
func Reap() map[int]syscall.WaitStatus {
	ended := map[int]syscall.WaitStatus{}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return ended
		}
		ended[pid] = status
	}
}

// KillDescendants sends SIGKILL once to every descendant of this process.
func KillDescendants() { killStrays(nil) }

// EndDescendants kills the descendants of this process until none is left, for at most attempt.SweepTime. It returns
// the descendants that remain.
func EndDescendants() (left []int) {
	deadline := time.Now().Add(attempt.SweepTime)
	for {
		if left = killStrays(nil); len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-time.After(sweepGap)
		Reap()
	}
}

// killStrays sends SIGKILL to all strays and returns them. It must be called until it finds no strays: a process may
// fork after it has been listed and before it is killed.
func killStrays(keep map[int]bool) []int {
	found := lookAround().strays(os.Getpid(), keep)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
	}
	return found
}

// A family is the tree of the processes on this machine. It does not contain zombies: their parents, or this process,
// will reap them.
type family struct {
	children map[int][]int
	group    map[int]int // :: process → its process group
}

func lookAround() family {
	f := family{children: map[int][]int{}, group: map[int]int{}}
	for _, p := range proc.All() {
		f.children[p.Parent] = append(f.children[p.Parent], p.ID)
		f.group[p.ID] = p.Group
	}
	return f
}

// strays returns the descendants of root that are not in keep, do not descend from a process in keep, and are not in
// the process group of such a process. Groups are considered because some processes of a running task may be orphans
// that now descend only from root. A process that a task has moved to another session and orphaned cannot be
// distinguished from the remains of a dead worker.
func (f family) strays(root int, keep map[int]bool) []int {
	kept := map[int]bool{} // groups
	for queue := slices.Collect(maps.Keys(keep)); len(queue) > 0; queue = queue[1:] {
		if group, ok := f.group[queue[0]]; ok {
			kept[group] = true
		}
		queue = append(queue, f.children[queue[0]]...)
	}
	var found []int
	for queue := f.children[root]; len(queue) > 0; queue = queue[1:] {
		if pid := queue[0]; !keep[pid] && !kept[f.group[pid]] {
			found = append(found, pid)
			queue = append(queue, f.children[pid]...)
		}
	}
	return found
}
