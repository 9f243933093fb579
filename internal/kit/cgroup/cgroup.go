// Package cgroup measures processes by control groups of Linux, where this process may make groups below its own.
//
// Of version 1 the controllers memory and cpuacct are used, each in its own hierarchy; of version 2 cpu.stat, which
// every group has, and memory.peak, where groups below ours have the memory controller already. A group may limit the
// memory of its processes; the kernel then kills them rather than give them more.
//
// To put a process into a group takes about a millisecond, so it is for those that run for long.
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

// A Parent is this process's own group, in each hierarchy in which it may have groups below it.
type Parent struct {
	root string // of the file system
	mem  place  // where peaks of memory are told; empty: nowhere
	cpu  place  // where cpu time is

	mu   sync.Mutex // guards left
	left []string   // directories of groups that were not empty when they were to be removed
}

// A place is a directory of a hierarchy.
type place struct {
	dir     string
	version int
}

// prefix begins the names of groups: corral-PID-NUMBER, by the process that made them.
const prefix = "corral-"

// Open returns our own group, nil if no group can be made below it. Groups that a process of ours left behind when it
// was killed are removed. root is "/", but for tests.
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

// writable reports whether a group can be made below one: permissions alone do not tell.
func writable(dir string) bool {
	trial, err := below(dir)
	return err == nil && os.Remove(trial) == nil
}

// below makes a group below another.
func below(dir string) (string, error) {
	return os.MkdirTemp(dir, fmt.Sprintf("%s%d-*", prefix, os.Getpid()))
}

// sweep removes groups whose makers are gone. One that has processes stays: it cannot be removed.
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

// Version is that of the groups that tell of memory, or else of cpu time.
func (p *Parent) Version() int {
	if p.mem.dir != "" {
		return p.mem.version
	}
	return p.cpu.version
}

// A Group has the processes of one task.
type Group struct {
	parent *Parent
	mem    string // its directory; empty: none
	cpu    string // likewise; the same in one hierarchy
}

// Take makes a group for a process and its descendants and puts them into it. Each parent goes before its children,
// so that those that are born meanwhile are in the group. What they used before does not count. Together they may have
// so many bytes of memory from then on, where that can be limited; 0: any amount.
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

// deepest is how many generations of processes are moved.
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

// enter puts a process into a group.
func enter(dir string, pid int) error {
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, pid)
	return errors.Join(err, f.Close())
}

// dirs are the group's directories, each once.
func (g *Group) dirs() (all []string) {
	if g.mem != "" {
		all = append(all, g.mem)
	}
	if g.cpu != "" && g.cpu != g.mem {
		all = append(all, g.cpu)
	}
	return all
}

// A Usage is what the processes of a group used, all together.
type Usage struct {
	CPU         time.Duration // 0: not known
	MemoryBytes int64         // at least so much at once, without what the kernel keeps of files; 0: not known
}

// Usage tells what was used. A part that cannot be read is not known.
func (g *Group) Usage() (u Usage) {
	if g.cpu != "" {
		u.CPU = g.parent.cpu.cpuTime(g.cpu)
	}
	if g.mem != "" {
		u.MemoryBytes = g.parent.mem.peak(g.mem)
	}
	return u
}

// Refused reports whether the kernel has killed a process of the group because the group had all the memory that it may
// have.
func (g *Group) Refused() bool { return g.mem != "" && g.parent.mem.refused(g.mem) }

// Remove removes the group. One in which a process is left, which may be one that was killed just now, is removed with
// a later one, by Close, or by another Open.
func (g *Group) Remove() { g.parent.remove(g.dirs()) }

// Close removes the groups that could not be removed before.
func (p *Parent) Close() { p.remove(nil) }

func (p *Parent) remove(dirs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = slices.DeleteFunc(append(p.left, dirs...), func(dir string) bool {
		err := os.Remove(dir)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	})
}
