package main

// Processor time and memory are read from /proc. Unlike a profile, this costs the process nothing, and it works for
// processes of other programs, including HTCondor's.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc/PID/stat: the kernel's USER_HZ, 100 on every
// architecture that Corral is built for.
const clockTick = 10 * time.Millisecond

// usage is the processor time of a process and of its reaped children.
type usage struct{ self, children time.Duration }

// stat contains fields of /proc/PID/stat.
type stat struct {
	state   string // Z: it has ended, and its parent has not yet waited for it
	parent  int
	started int64 // identifies the process together with its pid, because pids are reused
	usage
}

// statOf reads the stat of a process.
func statOf(pid int) (stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("reading the usage of a process: %w", err)
	}
	return parseStat(string(b))
}

// parseStat parses the fields after the program's name, which may contain blanks and parentheses.
func parseStat(line string) (s stat, err error) {
	const state, parent, utime, stime, cutime, cstime, starttime = 0, 1, 11, 12, 13, 14, 19 // after the name
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(f) <= starttime {
		return s, fmt.Errorf("%q is not a line of /proc/PID/stat", line)
	}
	ticks := func(a, b int) time.Duration {
		return time.Duration(number(f[a], &err)+number(f[b], &err)) * clockTick
	}
	s.state, s.parent = f[state], int(number(f[parent], &err))
	s.self, s.children = ticks(utime, stime), ticks(cutime, cstime)
	s.started = number(f[starttime], &err)
	return s, err
}

// A process identifies a process that may have ended since.
type process struct {
	pid     int
	started int64
}

// processOf returns a running process, and its parent.
func processOf(pid int) (p process, parent int, err error) {
	s, err := statOf(pid)
	return process{pid, s.started}, s.parent, err
}

// alive reports whether the process is still running.
func (p process) alive() bool {
	s, err := statOf(p.pid)
	return err == nil && s.started == p.started && s.state != "Z"
}

// number parses an integer; it keeps an earlier error.
func number(text string, err *error) int64 {
	n, trouble := strconv.ParseInt(text, 10, 64)
	if *err == nil {
		*err = trouble
	}
	return n
}

// memory is a process's resident memory in KiB.
type memory struct{ now, peak int64 }

// memoryOf reads VmRSS and VmHWM.
func memoryOf(pid int) (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return parseStatus(string(b))
}

// parseStatus parses the two lines of /proc/PID/status about memory.
func parseStatus(text string) (m memory, err error) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSuffix(strings.TrimSpace(value), " kB")
		switch name {
		case "VmRSS":
			m.now = number(value, &err)
		case "VmHWM":
			m.peak = number(value, &err)
		}
	}
	if err == nil && m.now == 0 {
		err = fmt.Errorf("/proc/PID/status has no VmRSS")
	}
	return m, err
}
