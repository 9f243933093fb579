package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A call describes a system call at which a filter stops a process, and the data to record about it.
type call struct {
	name string
	how  how
	from int // the argument with the descriptor that is read from; -1: none
	to   int // likewise, written to
}

// A how specifies how a call is recorded.
type how int

const (
	moving  how = iota // it returns the number of bytes moved
	sending            // it returns 0; the third argument is the number of bytes moved
	batch              // it returns the number of messages moved; the second argument points to their sizes
	piping             // it moves bytes into or out of a pipe, depending on the end that the descriptor belongs to
	opening            // it returns a descriptor
	mapping            // the fifth argument is a descriptor, the second the length of the mapping
	loading            // it replaces the program, after which its peak memory can no longer be read
	missing            // it moves bytes that cannot be accounted for
)

func reads(name string, fd int) call  { return call{name, moving, fd, -1} }
func writes(name string, fd int) call { return call{name, moving, -1, fd} }
func opens(name string) call          { return call{name, opening, -1, -1} }
func misses(name string) call         { return call{name, missing, -1, -1} }

// calls maps numbers to the calls that both architectures have; older ones are in olderCalls.
var calls = map[uint64]call{
	unix.SYS_READ: reads("read", 0), unix.SYS_PREAD64: reads("pread64", 0),
	unix.SYS_READV: reads("readv", 0), unix.SYS_PREADV: reads("preadv", 0), unix.SYS_PREADV2: reads("preadv2", 0),
	unix.SYS_RECVFROM: reads("recvfrom", 0), unix.SYS_RECVMSG: reads("recvmsg", 0),
	unix.SYS_RECVMMSG: {"recvmmsg", batch, 0, -1}, unix.SYS_MQ_TIMEDRECEIVE: reads("mq_timedreceive", 0),

	unix.SYS_WRITE: writes("write", 0), unix.SYS_PWRITE64: writes("pwrite64", 0),
	unix.SYS_WRITEV: writes("writev", 0), unix.SYS_PWRITEV: writes("pwritev", 0),
	unix.SYS_PWRITEV2: writes("pwritev2", 0),
	unix.SYS_SENDTO:   writes("sendto", 0), unix.SYS_SENDMSG: writes("sendmsg", 0),
	unix.SYS_SENDMMSG: {"sendmmsg", batch, -1, 0}, unix.SYS_MQ_TIMEDSEND: {"mq_timedsend", sending, -1, 0},

	unix.SYS_SENDFILE: {"sendfile", moving, 1, 0}, unix.SYS_SPLICE: {"splice", moving, 0, 2},
	unix.SYS_COPY_FILE_RANGE: {"copy_file_range", moving, 0, 2}, unix.SYS_TEE: {"tee", moving, 0, 1},
	unix.SYS_VMSPLICE: {"vmsplice", piping, 0, 0},

	unix.SYS_OPENAT: opens("openat"), unix.SYS_OPENAT2: opens("openat2"),
	unix.SYS_OPEN_BY_HANDLE_AT: opens("open_by_handle_at"),

	unix.SYS_EXECVE: {"execve", loading, -1, -1}, unix.SYS_EXECVEAT: {"execveat", loading, -1, -1},

	unix.SYS_MMAP:           {"mmap", mapping, -1, -1}, // of a file: its pages are read and written without any call
	unix.SYS_IO_URING_ENTER: misses("io_uring_enter"), unix.SYS_IO_SUBMIT: misses("io_submit"),
	unix.SYS_IO_URING_SETUP:   misses("io_uring_setup"), // with a kernel thread, no other call is ever made
	unix.SYS_PROCESS_VM_READV: misses("process_vm_readv"), unix.SYS_PROCESS_VM_WRITEV: misses("process_vm_writev"),
	unix.SYS_IOCTL:  misses(cloning), // the filter lets all other requests through
	unix.SYS_MSGSND: misses("msgsnd"), unix.SYS_MSGRCV: misses("msgrcv"), unix.SYS_SHMAT: misses("shmat"),
}

func init() {
	for nr, c := range olderCalls {
		calls[nr] = c
	}
}

// foreign is the name under which calls of programs for another architecture are counted: the numbers denote other
// calls there.
const foreign = "32-bit programs"

// cloning is the name for the ioctl(2) requests that make files share their blocks.
const cloning = "ioctl FICLONE"

// moves describes the transfer of a thread's call, as far as it was known when the call began.
type moves struct {
	in, out *entry
	count   uint64 // sending: bytes; batch: address of the message headers
}

// begin records that a thread has begun a call. If the end of the call matters, the call is stored with the thread.
// replaces reports whether the process's program is about to be replaced.
func (x *books) begin(th *thread, info *callInfo) (replaces bool) {
	c, known := calls[info.nr]
	if info.arch != nativeArch || !known && info.nr >= otherABI {
		x.ledger.miss(foreign, 0)
		return false
	}
	switch {
	case !known:
	case c.how == mapping:
		x.mapped(th, info)
	case c.how == missing:
		if c.name != cloning || isClone(info.args[1]) {
			x.ledger.miss(c.name, 0)
		}
	case c.how != loading:
		th.call, th.moves = &c, x.movesOf(th, &c, info)
	}
	return known && c.how == loading
}

// movesOf looks up the entries of a call's descriptors.
func (x *books) movesOf(th *thread, c *call, info *callInfo) (m moves) {
	switch c.how {
	case opening:
		return m
	case sending:
		m.count = info.args[2]
	case batch:
		m.count = info.args[1]
	case piping:
		e := x.entryOf(th.tid, int(int32(info.args[0])))
		if writable(th.tid, int(int32(info.args[0]))) {
			m.out = e
		} else {
			m.in = e
		}
		return m
	}
	if c.from >= 0 {
		m.in = x.entryOf(th.tid, int(int32(info.args[c.from])))
	}
	if c.to >= 0 {
		m.out = x.entryOf(th.tid, int(int32(info.args[c.to])))
	}
	return m
}

// end records the result of a thread's current call.
func (x *books) end(th *thread, info *callInfo) {
	c, m := th.call, th.moves
	th.call, th.moves = nil, moves{}
	n := int64(info.nr)
	if c == nil || byte(info.args[0]) != 0 || n < 0 {
		return
	}
	switch c.how {
	case opening:
		x.opened(th, int(n))
		return
	case sending:
		n = int64(m.count)
	case batch:
		n = sizes(th.tid, uintptr(m.count), int(n))
	}
	x.ledger.moved(m.in, m.out, n)
}

// opened records that a file was opened, with its current size: the size of an input is its size at that time.
func (x *books) opened(th *thread, fd int) {
	e := x.entryOf(th.tid, fd)
	if e == nil || !e.listed {
		return
	}
	e.Opens++
	if e.Kind == trace.Regular && e.Opens > 1 {
		_, e.Size = x.kindOf(th.tid, fd, "")
	}
}

// mapped records that a file was mapped into the address space. The number of pages that are actually read is unknown.
func (x *books) mapped(th *thread, info *callInfo) {
	if info.args[3]&unix.MAP_ANONYMOUS != 0 {
		return
	}
	size := int64(info.args[1])
	if e := x.entryOf(th.tid, int(int32(info.args[4]))); e != nil {
		e.Mapped += size
		x.ledger.miss("mmap", size)
	}
}

// isClone reports whether an ioctl(2) request makes the kernel share blocks between files.
func isClone(req uint64) bool {
	return req == unix.FICLONE || req == unix.FICLONERANGE || req == unix.FIDEDUPERANGE
}
