package pilot

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant whose own parent dies.
func adoptOrphans() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// reap collects every child that has ended, our own and adopted ones alike, and returns the statuses by
// process id. Nothing else in this process may wait for a child.
func reap() map[int]syscall.WaitStatus {
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

// A family is the processes of this machine as they descend from each other. Zombies are not in it:
// their parents or we will collect them.
type family struct {
	children map[int][]int
	group    map[int]int // :: process → its process group
}

func lookAround() family {
	f := family{children: map[int][]int{}, group: map[int]int{}}
	for _, pid := range processIDs() {
		if parent, group, ok := statOf(pid); ok {
			f.children[parent] = append(f.children[parent], pid)
			f.group[pid] = group
		}
	}
	return f
}

// strays returns the descendants of root that are neither in keep, nor descend from a process in keep,
// nor belong to the process group of one that does: of a running task's processes some may have lost
// their parents.
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

// killStrays sends SIGKILL to all strays and reports whether there were none. It may have to be called
// again: a process may fork between being seen and being killed.
func killStrays(keep map[int]bool) (none bool) {
	found := lookAround().strays(os.Getpid(), keep)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone by now
	}
	return len(found) == 0
}

func processIDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error is as good as any snapshot
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// statOf returns parent and process group of a process; not ok if it has ended.
func statOf(pid int) (parent, group int, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	return parseStat(string(b))
}

// parseStat reads state, parent and process group from a line of /proc/PID/stat. The name, in
// parentheses, may hold anything, parentheses and blanks too.
func parseStat(stat string) (parent, group int, ok bool) {
	end := strings.LastIndexByte(stat, ')')
	f := strings.Fields(stat[end+1:])
	if end < 0 || len(f) < 3 || f[0] == "Z" || f[0] == "X" {
		return 0, 0, false
	}
	parent, errParent := strconv.Atoi(f[1])
	group, errGroup := strconv.Atoi(f[2])
	return parent, group, errParent == nil && errGroup == nil
}
