// Package proc reads /proc: the tree of the processes on this machine, and their memory.
//
// Reading all processes takes about ten microseconds for each process. There are two measures of a process's memory:
// the resident set size, which is cheap to read and counts shared memory once for each process that shares it, and the
// private memory, which the kernel must add up page by page.
package proc

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"
)

// A Process is a running process: zombies, which their parents will reap, are excluded.
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

// IDs returns the pids of the machine's processes.
func IDs() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // the entries before an error, if any
	var ids []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Look returns one process; ok is false if it has ended.
func Look(id int) (p Process, ok bool) {
	var buffer [1024]byte
	p, ok = parseStat(read(id, "stat", buffer[:]))
	p.ID = id
	return p, ok
}

// Tree returns root, its descendants, and the processes of root's process group, whose parents may have ended. It does
// not find processes that have left the group and lost their parent.
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

// Held returns the memory that the kernel cannot reclaim from a process: it excludes cached files and counts memory
// shared with other processes proportionally, so that the sum over all processes is their total memory. ok is false if
// the kernel does not report the value, as before version 5.9, or for a process of another user.
func Held(id int) (size int64, ok bool) {
	var buffer [4096]byte
	return parseRollup(read(id, "smaps_rollup", buffer[:]))
}

// read reads the beginning of a file of a process, with as few system calls as possible.
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

// Indices of the fields in /proc/PID/stat that follow the program's name.
const (
	stateField, parentField, groupField = 0, 1, 2
	beganField                          = 19 // in ticks since the machine was booted
	residentField                       = 21 // in pages
)

// tick is the unit of times in /proc, which on Linux is independent of the kernel's own clock rate.
const tick = 10 * time.Millisecond

// Began returns when a process began, as the time from the machine's boot, rounded down to a tick; ok is false if the
// process has ended. If a pid is reused, the new process has a later time.
func Began(id int) (at time.Duration, ok bool) {
	var buffer [1024]byte
	return parseBegan(read(id, "stat", buffer[:]))
}

// parseBegan parses a line of /proc/PID/stat like parseStat.
func parseBegan(stat []byte) (at time.Duration, ok bool) {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) <= beganField {
		return 0, false
	}
	ticks, err := strconv.ParseInt(string(f[beganField]), 10, 48)
	return time.Duration(ticks) * tick, err == nil && ticks >= 0 && ticks < int64(math.MaxInt64/tick)
}

// parseStat parses a line of /proc/PID/stat. The program's name, in parentheses, may contain any characters, including
// parentheses and blanks.
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

// parseRollup adds up the anonymous and the shared memory in /proc/PID/smaps_rollup.
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
