package cgroup

import (
	"cmp"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A hierarchy is a mounted tree of groups, as seen from this process.
type hierarchy struct {
	dir         string // of this process's own group
	version     int
	memory, cpu bool // whether its groups can measure them
}

// hierarchies finds the groups in /proc/self/cgroup that are mounted according to /proc/self/mountinfo. Version 1 comes
// first, because a machine with both versions has its controllers there.
func hierarchies(memberships, mounts string) (all []hierarchy) {
	var unified []hierarchy
	for line := range strings.Lines(memberships) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			if dir, ok := mounted(mounts, "cgroup2", "", f[2]); ok {
				unified = append(unified, hierarchy{dir, 2, true, true})
			}
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			if controller != "memory" && controller != "cpuacct" {
				continue
			}
			if dir, ok := mounted(mounts, "cgroup", controller, f[2]); ok {
				all = append(all, hierarchy{dir, 1, controller == "memory", controller == "cpuacct"})
			}
		}
	}
	return append(all, unified...)
}

// mounted returns the directory of a group where its hierarchy is mounted; ok is false if the hierarchy is not mounted,
// or only a part of it without the group.
func mounted(mounts, kind, controller, group string) (dir string, ok bool) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		at, of := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(of) < 3 || of[0] != kind {
			continue
		}
		if options := "," + of[2] + ","; controller != "" && !strings.Contains(options, ","+controller+",") {
			continue
		}
		below, within := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(at[3], "/"))
		if !within || below != "" && !strings.HasPrefix(below, "/") || strings.Contains(group, "..") {
			continue
		}
		return path.Join(at[4], below), true
	}
	return "", false
}

// cpuTime returns the CPU time of a group.
func (p place) cpuTime(dir string) time.Duration {
	if p.version == 1 {
		text, _ := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
		return time.Duration(number(string(text)))
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	usec := field(string(text), "usage_usec")
	return time.Duration(min(usec, math.MaxInt64/1000)) * time.Microsecond
}

// peak returns the peak memory of a group, minus the size of its cached files after its processes have ended. The
// kernel counts cached pages of files as memory, up to all available memory; tasks do not need these pages. If the
// cache has only grown, the processes used at least the difference at the time of the peak.
func (p place) peak(dir string) int64 {
	name, files := "memory.peak", "file"
	if p.version == 1 {
		name, files = "memory.max_usage_in_bytes", "total_cache"
	}
	text, _ := os.ReadFile(filepath.Join(dir, name))
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	return max(0, number(string(text))-field(string(stat), files))
}

// limit limits the memory of a group, and excludes swap: a group over its limit should be killed, not slowed down. If
// the kernel does not accept the limit, the group has none, and only other methods of watching the processes' memory
// apply.
func (p place) limit(dir string, memory int64) {
	of := [][2]string{{"memory.max", ""}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"}}
	if p.version == 1 { // the limit that includes swap must not be below the other
		of = [][2]string{{"memory.limit_in_bytes", ""}, {"memory.memsw.limit_in_bytes", ""}}
	}
	for _, f := range of {
		text := cmp.Or(f[1], strconv.FormatInt(memory, 10))
		_ = os.WriteFile(filepath.Join(dir, f[0]), []byte(text), 0o600)
	}
}

// refused reports whether the kernel killed a process of a group that had reached its limit. The kernel also kills
// processes when the machine is short of memory; such kills do not count.
func (p place) refused(dir string) bool {
	if p.version == 2 {
		text, _ := os.ReadFile(filepath.Join(dir, "memory.events"))
		return field(string(text), "oom") > 0 && field(string(text), "oom_kill") > 0
	}
	killed, _ := os.ReadFile(filepath.Join(dir, "memory.oom_control"))
	limit, _ := os.ReadFile(filepath.Join(dir, "memory.limit_in_bytes"))
	most, _ := os.ReadFile(filepath.Join(dir, "memory.max_usage_in_bytes"))
	return field(string(killed), "oom_kill") > 0 && number(string(most)) >= number(string(limit))/10*9
}

// number parses a text that is a single number, and returns 0 for any other text.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// field returns the number after a name in a text with one name and number on each line, or 0 if the name is missing.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return number(value)
		}
	}
	return 0
}
