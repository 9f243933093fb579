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

// sweepGap is between two looks at what is left.
const sweepGap = 25 * time.Millisecond

// AdoptOrphans makes this process the parent of every descendant whose own parent dies.
func AdoptOrphans() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// Reap collects every child that has ended, our own and adopted ones alike, and returns the statuses by
// process id. Nothing else in this process may wait for a child.
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

// KillDescendants sends SIGKILL to every process that descends from this one, once.
func KillDescendants() { killStrays(nil) }

// EndDescendants kills every process that descends from this one until none is there, for attempt.SweepTime at most. It
// returns those that are left.
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

// killStrays sends SIGKILL to all strays and returns them. It has to be called until there are none: a process may fork
// between being seen and being killed.
func killStrays(keep map[int]bool) []int {
	found := lookAround().strays(os.Getpid(), keep)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone by now
	}
	return found
}

// A family is the processes of this machine as they descend from each other. It has no zombies: their parents, or this
// process, will collect them.
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

// strays returns the descendants of root that are neither in keep, nor descend from a process in keep, nor belong to
// the process group of one that does. The groups count because some processes of a running task may have lost their
// parents and descend only from root by now; what a task puts into another session and then orphans is beyond telling
// apart from a dead worker's leavings.
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
