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

// The functions below read data about a tracee from /proc. The tracee is stopped, so the data is complete; only a
// SIGKILL may remove the data in the meantime, and then the result is empty.

// A reader reads files in /proc without an allocation for each file.
type reader struct{ text [4096]byte }

// read reads the beginning of a thread's file, up to the size of the buffer; the result is valid until the next call.
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

// field returns the number after a name in a text with lines such as "VmHWM: 1234 kB".
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

// peaks returns a process's peak memory and peak address space, in bytes, as read from one of its threads.
func (x *reader) peaks(pid, tid int) (resident, virtual int64, ok bool) {
	status := x.read(taskFile(pid, tid, "status"))
	virtual, _ = field(status, "\nVmPeak:")
	resident, ok = field(status, "\nVmHWM:")
	return resident << 10, virtual << 10, ok
}

// transferred returns the number of bytes that a thread has read and written with read(2), write(2) and similar calls.
func (x *reader) transferred(pid, tid int) (read, written int64) {
	text := x.read(taskFile(pid, tid, "io"))
	read, _ = field(text, "rchar:")
	written, _ = field(text, "\nwchar:")
	return read, written
}

// family returns the process of a thread and the parent of that process; ok is false if the thread has ended.
func (x *reader) family(tid int) (pid, parent int, ok bool) {
	text := x.read("/proc/" + strconv.Itoa(tid) + "/status")
	group, ok1 := field(text, "\nTgid:")
	by, ok2 := field(text, "\nPPid:")
	return int(group), int(by), ok1 && ok2
}

// isThread reports whether tid is a thread of pid, and not a separate process.
func isThread(pid, tid int) bool {
	return syscall.Access("/proc/"+strconv.Itoa(pid)+"/task/"+strconv.Itoa(tid), 0) == nil
}

// maxArgv limits the length of a command line in a trace, in bytes.
const maxArgv = 1000

// argv returns a process's arguments, truncated if they are long.
func (x *reader) argv(pid int) []string {
	line := x.read("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return clip(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
}

// clip truncates arguments that are long in total.
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

// Clocks of another process, by the kernel's encoding of its id. They measure the CPU time of its threads, including
// ended ones: clockBoth samples both modes, clockUser samples user mode, and clockExact measures both modes exactly.
const (
	clockBoth  = 0
	clockUser  = 1
	clockExact = 2
)

// cpuTime returns the CPU time of a process. The sum is exact; its division into user and system time is based on
// samples.
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
