// Package cgroup measures processes with Linux control groups, if this process may create groups below its own.
//
// With version 1 it uses the controllers memory and cpuacct, each in its own hierarchy; with version 2 it uses
// cpu.stat, which every group has, and memory.peak, if the memory controller is already enabled for groups below this
// process's. A group may limit the memory of its processes; the kernel kills processes that would exceed the limit.
//
// Moving a process to a group takes about a millisecond, so the package is meant for long-running processes.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Parent is this process's own group, in each hierarchy in which the process may create groups below that group.
type Parent struct {
	root string // of the file system
	mem  place  // hierarchy for peaks of memory; empty: none
	cpu  place  // hierarchy for CPU time

	mu   sync.Mutex // guards left
	left []string   // directories of groups that could not be removed because they were not empty
}

// A place is a directory of a hierarchy.
type place struct {
	dir     string
	version int
}

// prefix is the prefix of groups' names: corral-PID-NUMBER, with the pid of the process that created them.
const prefix = "corral-"

// Open returns this process's own group, or nil if no group can be created below it. It removes groups left by killed
// processes of Corral. root is "/", except in tests.
func Open(root string) *Parent {
	memberships, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil
	}
	p := &Parent{root: root}
	for _, h := range hierarchies(string(memberships), string(mounts)) {
		at := place{filepath.Join(root, h.dir), h.version}
		memory, cpu := h.memory && p.mem.dir == "", h.cpu && p.cpu.dir == ""
		if h.version == 2 && memory {
			enabled, _ := os.ReadFile(filepath.Join(at.dir, "cgroup.subtree_control"))
			memory = strings.Contains(" "+strings.TrimSpace(string(enabled))+" ", " memory ")
		}
		if !memory && !cpu || !writable(at.dir) {
			continue
		}
		sweep(at.dir)
		if memory {
			p.mem = at
		}
		if cpu {
			p.cpu = at
		}
	}
	if p.mem.dir == "" && p.cpu.dir == "" {
		return nil
	}
	return p
}

// writable reports whether a group can be created below dir. It tries to create one, because permissions alone do not
// show this.
func writable(dir string) bool {
	trial, err := below(dir)
	return err == nil && os.Remove(trial) == nil
}

// below creates a group below another.
func below(dir string) (string, error) {
	return os.MkdirTemp(dir, fmt.Sprintf("%s%d-*", prefix, os.Getpid()))
}

// sweep removes groups whose creators have ended. A group that contains processes remains, because it cannot be
// removed.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), prefix)
		number, _, _ := strings.Cut(name, "-")
		if pid, err := strconv.Atoi(number); ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Version returns the version of the groups that measure memory, or else CPU time.
func (p *Parent) Version() int {
	if p.mem.dir != "" {
		return p.mem.version
	}
	return p.cpu.version
}

// A Group contains the processes of one task.
type Group struct {
	parent *Parent
	mem    string // its directory; empty: none
	cpu    string // likewise; the same directory if there is one hierarchy
}

// Take creates a group and moves a process and its descendants to it. Parents are moved before their children, so that
// processes forked in the meantime are in the group. Earlier usage does not count. From then on the processes together
// may use at most the given amount of memory, in bytes, if the group can limit it; 0: any amount.
func (p *Parent) Take(pid int, memory int64) (*Group, error) {
	g := &Group{parent: p}
	var err error
	if p.mem.dir != "" {
		g.mem, err = below(p.mem.dir)
	}
	switch {
	case err != nil || p.cpu.dir == "":
	case p.cpu == p.mem:
		g.cpu = g.mem
	default:
		g.cpu, err = below(p.cpu.dir)
	}
	if g.mem != "" && memory > 0 {
		p.mem.limit(g.mem, memory)
	}
	if err == nil {
		err = g.add(pid, 0)
	}
	if err != nil {
		g.Remove()
		return nil, err
	}
	return g, nil
}

// deepest is the maximum number of generations of descendants that are moved.
const deepest = 32

func (g *Group) add(pid, generation int) error {
	for _, dir := range g.dirs() {
		if err := enter(dir, pid); err != nil {
			return err
		}
	}
	if generation == deepest {
		return nil
	}
	threads, _ := filepath.Glob(filepath.Join(g.parent.root, "proc", strconv.Itoa(pid), "task/*/children"))
	for _, name := range threads {
		children, _ := os.ReadFile(name)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = g.add(n, generation+1) // it may have ended
			}
		}
	}
	return nil
}

// enter moves a process to a group.
func enter(dir string, pid int) error {
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, pid)
	return errors.Join(err, f.Close())
}

// dirs returns the group's directories, without duplicates.
func (g *Group) dirs() (all []string) {
	if g.mem != "" {
		all = append(all, g.mem)
	}
	if g.cpu != "" && g.cpu != g.mem {
		all = append(all, g.cpu)
	}
	return all
}

// A Usage is the total usage of a group's processes.
type Usage struct {
	CPU         time.Duration // 0: unknown
	MemoryBytes int64         // lower bound of the peak, without cached files; 0: unknown
}

// Usage returns the usage so far. A value that cannot be read is unknown.
func (g *Group) Usage() (u Usage) {
	if g.cpu != "" {
		u.CPU = g.parent.cpu.cpuTime(g.cpu)
	}
	if g.mem != "" {
		u.MemoryBytes = g.parent.mem.peak(g.mem)
	}
	return u
}

// Refused reports whether the kernel has killed a process of the group because the group had reached its memory limit.
func (g *Group) Refused() bool { return g.mem != "" && g.parent.mem.refused(g.mem) }

// Remove removes the group. If it still contains a process, perhaps one that was just killed, it is removed later with
// another group, by Close, or by another Open.
func (g *Group) Remove() { g.parent.remove(g.dirs()) }

// Close removes the groups that could not be removed earlier.
func (p *Parent) Close() { p.remove(nil) }

func (p *Parent) remove(dirs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = slices.DeleteFunc(append(p.left, dirs...), func(dir string) bool {
		err := os.Remove(dir)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	})
}
