package ptrace

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What /proc tells of a tracee. It has stopped, so that all of it is there; only a SIGKILL may take it away meanwhile,
// and then what is read is empty.

// A reader reads it, without room of its own for each file.
type reader struct{ text [4096]byte }

// read reads the beginning of a file of a thread, as much as there is room for; the result is good until the next call.
func (x *reader) read(path string) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n, err := syscall.Read(fd, x.text[:])
	if err != nil || n < 0 {
		return nil
	}
	return x.text[:n]
}

func taskFile(pid, tid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/" + name
}

// field returns the number that follows a name in a text of lines such as "VmHWM:	1234 kB".
func field(text []byte, name string) (n int64, ok bool) {
	at := bytes.Index(text, []byte(name))
	if at < 0 {
		return 0, false
	}
	line, _, _ := bytes.Cut(text[at+len(name):], []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(words[0]), 10, 64)
	return n, err == nil && n >= 0
}

// peaks returns what a process had of memory and of address space at most, in bytes, by one of its threads.
func (x *reader) peaks(pid, tid int) (resident, virtual int64, ok bool) {
	status := x.read(taskFile(pid, tid, "status"))
	virtual, _ = field(status, "\nVmPeak:")
	resident, ok = field(status, "\nVmHWM:")
	return resident << 10, virtual << 10, ok
}

// transferred returns how many bytes a thread has read and written by read(2), write(2) and the like.
func (x *reader) transferred(pid, tid int) (read, written int64) {
	text := x.read(taskFile(pid, tid, "io"))
	read, _ = field(text, "rchar:")
	written, _ = field(text, "\nwchar:")
	return read, written
}

// family returns the process of a thread and that process's parent; not ok if it is gone.
func (x *reader) family(tid int) (pid, parent int, ok bool) {
	text := x.read("/proc/" + strconv.Itoa(tid) + "/status")
	group, ok1 := field(text, "\nTgid:")
	by, ok2 := field(text, "\nPPid:")
	return int(group), int(by), ok1 && ok2
}

// isThread reports whether tid is a thread of pid, and not a process of its own.
func isThread(pid, tid int) bool {
	return syscall.Access("/proc/"+strconv.Itoa(pid)+"/task/"+strconv.Itoa(tid), 0) == nil
}

// maxArgv bounds what a trace keeps of a command line, in bytes.
const maxArgv = 1000

// argv returns what a process was called with, cut off where it is long.
func (x *reader) argv(pid int) []string {
	line := x.read("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return clip(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
}

// clip cuts arguments off where they are long.
func clip(argv []string) []string {
	argv = slices.Clone(argv)
	left := maxArgv
	for i, word := range argv {
		argv[i] = strings.ToValidUTF8(word[:min(len(word), left)], "\uFFFD")
		if left -= len(word); left <= 0 {
			return argv[:i+1]
		}
	}
	return argv
}

// Clocks of another process, by the kernel's encoding of its id: what its threads have had of cpus, those that have
// ended included; in user mode; and in both modes, by the same way of counting as the latter.
const (
	clockBoth  = 0
	clockUser  = 1
	clockExact = 2
)

// cpuTime returns what a process has had of cpus. The sum is exact. How it is divided is known by samples.
func cpuTime(pid int) (user, sys time.Duration) {
	clock := func(which int) time.Duration {
		var at unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|which), &at) != nil {
			return 0
		}
		return time.Duration(at.Nano())
	}
	exact, inUser, both := clock(clockExact), clock(clockUser), clock(clockBoth)
	if both <= 0 {
		return exact, 0
	}
	user = time.Duration(float64(exact) * min(1, float64(inUser)/float64(both)))
	return user, exact - user
}
