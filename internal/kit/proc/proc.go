// Package proc reads /proc: how the processes of this machine descend from each other, and what memory they have.
//
// Reading all of them takes some ten microseconds for each. There are two measures of a process's memory: the resident
// set, which is cheap and counts shared memory once for each process that shares it, and the private memory, which the
// kernel has to add up page by page.
package proc

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"
)

// A Process is one that runs: zombies, which their parents will collect, are left out.
type Process struct {
	ID, Parent, Group int
	ResidentBytes     int64
}

// All returns the processes of the machine.
func All() []Process {
	var all []Process
	for _, id := range IDs() {
		if p, ok := Look(id); ok {
			all = append(all, p)
		}
	}
	return all
}

// IDs returns the numbers of the machine's processes.
func IDs() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // those that there were until an error
	var ids []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Look returns one process; not ok if it has ended.
func Look(id int) (p Process, ok bool) {
	var buffer [1024]byte
	p, ok = parseStat(read(id, "stat", buffer[:]))
	p.ID = id
	return p, ok
}

// Tree returns the processes that descend from root, root itself, and those of root's process group, whose parents may
// have ended. What has left the group and lost its parent is not found.
func Tree(all []Process, root int) []Process {
	children := map[int][]Process{}
	var tree []Process
	for _, p := range all {
		if p.ID == root || p.Group == root {
			tree = append(tree, p)
		}
		children[p.Parent] = append(children[p.Parent], p)
	}
	found := make(map[int]bool, len(tree))
	for _, p := range tree {
		found[p.ID] = true
	}
	for i := 0; i < len(tree); i++ {
		for _, c := range children[tree[i].ID] {
			if !found[c.ID] {
				found[c.ID] = true
				tree = append(tree, c)
			}
		}
	}
	return tree
}

// Held is the memory of a process that the kernel cannot take away from it: not what is read from files, and of what it
// shares with other processes a part, so that the sum over all of them is what they have together. ok is false where
// that is not told, as in kernels before 5.9, or of a process of somebody else.
func Held(id int) (size int64, ok bool) {
	var buffer [4096]byte
	return parseRollup(read(id, "smaps_rollup", buffer[:]))
}

// read reads the beginning of a file of a process, with as few system calls as it takes.
func read(id int, name string, buffer []byte) []byte {
	var path [48]byte
	at := append(strconv.AppendInt(append(path[:0], "/proc/"...), int64(id), 10), '/')
	fd, err := syscall.Open(string(append(at, name...)), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n, err := syscall.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// The fields of /proc/PID/stat behind the program's name that count here.
const (
	stateField, parentField, groupField = 0, 1, 2
	beganField                          = 19 // in ticks since the machine was started
	residentField                       = 21 // in pages
)

// tick is the unit of times in /proc, on every Linux whatever its kernel counts in.
const tick = 10 * time.Millisecond

// Began returns when a process began, as the time from the start of the machine to the beginning of a tick; not ok if
// it has ended. A number that is given again is another process's, which began later.
func Began(id int) (at time.Duration, ok bool) {
	var buffer [1024]byte
	return parseBegan(read(id, "stat", buffer[:]))
}

// parseBegan reads a line of /proc/PID/stat as parseStat does.
func parseBegan(stat []byte) (at time.Duration, ok bool) {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) <= beganField {
		return 0, false
	}
	ticks, err := strconv.ParseInt(string(f[beganField]), 10, 48)
	return time.Duration(ticks) * tick, err == nil && ticks >= 0 && ticks < int64(math.MaxInt64/tick)
}

// parseStat reads a line of /proc/PID/stat. The program's name, in parentheses, may hold anything, even parentheses and
// blanks.
func parseStat(stat []byte) (p Process, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	f := bytes.Fields(stat[end+1:])
	if end < 0 || len(f) <= residentField || string(f[stateField]) == "Z" || string(f[stateField]) == "X" {
		return Process{}, false
	}
	parent, errParent := strconv.Atoi(string(f[parentField]))
	group, errGroup := strconv.Atoi(string(f[groupField]))
	pages, errPages := strconv.ParseInt(string(f[residentField]), 10, 48)
	if errParent != nil || errGroup != nil || errPages != nil || min(int64(parent), int64(group), pages) < 0 {
		return Process{}, false
	}
	return Process{Parent: parent, Group: group, ResidentBytes: pages * int64(os.Getpagesize())}, true
}

// parseRollup adds up the anonymous and the shared memory of /proc/PID/smaps_rollup.
func parseRollup(text []byte) (size int64, ok bool) {
	found := 0
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) != 3 || string(f[0]) != "Pss_Anon:" && string(f[0]) != "Pss_Shmem:" {
			continue
		}
		kib, err := strconv.ParseInt(string(f[1]), 10, 48)
		if err != nil || kib < 0 {
			return 0, false
		}
		size += kib << 10
		found++
	}
	return size, found == 2
}
