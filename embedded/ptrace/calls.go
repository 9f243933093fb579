package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A call is a system call that a filter stops at, and what is to be noted of it.
type call struct {
	name string
	how  how
	from int // which argument is the descriptor that is read, -1: none
	to   int // likewise, that is written
}

// A how says what of a call is noted.
type how int

const (
	moving  how = iota // it returns how many bytes it has moved
	sending            // it returns 0; the third argument is how many bytes it has moved
	batch              // it returns how many messages it has moved; the second argument is where their sizes are
	piping             // it moves bytes into a pipe or out of it, by which end the descriptor is
	opening            // it returns a descriptor
	mapping            // the fifth argument is a descriptor, the second how much of the address space it gets
	loading            // it replaces the program, whose peak of memory is lost then
	missing            // it moves bytes of which nothing is known
)

func reads(name string, fd int) call  { return call{name, moving, fd, -1} }
func writes(name string, fd int) call { return call{name, moving, -1, fd} }
func opens(name string) call          { return call{name, opening, -1, -1} }
func misses(name string) call         { return call{name, missing, -1, -1} }

// calls are those that both architectures have, by number; older ones are in olderCalls.
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

	unix.SYS_MMAP:           {"mmap", mapping, -1, -1}, // of a file: pages of it are read and written without any call
	unix.SYS_IO_URING_ENTER: misses("io_uring_enter"), unix.SYS_IO_SUBMIT: misses("io_submit"),
	unix.SYS_IO_URING_SETUP:   misses("io_uring_setup"), // with a thread of the kernel's nothing else is ever called
	unix.SYS_PROCESS_VM_READV: misses("process_vm_readv"), unix.SYS_PROCESS_VM_WRITEV: misses("process_vm_writev"),
	unix.SYS_IOCTL:  misses(cloning), // the filter lets all other requests through
	unix.SYS_MSGSND: misses("msgsnd"), unix.SYS_MSGRCV: misses("msgrcv"), unix.SYS_SHMAT: misses("shmat"),
}

func init() {
	for nr, c := range olderCalls {
		calls[nr] = c
	}
}

// foreign is what calls of programs for another architecture are counted as: their numbers mean something else.
const foreign = "32-bit programs"

// cloning is what requests of ioctl(2) are called by which files come to share their blocks.
const cloning = "ioctl FICLONE"

// moves is what a thread's call moves, as far as it was known when it began.
type moves struct {
	in, out *entry
	count   uint64 // sending: bytes; batch: where the headers of the messages are
}

// begin notes that a thread has begun a call. What it is in the middle of is kept with it if its end matters. replaces
// says that its process's program is about to be replaced.
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

// movesOf looks up where the descriptors of a call lead.
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

// end notes what a thread has got back of the call that it was in the middle of.
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

// opened notes that a file was opened, with the size that it has now: an input is as large as that.
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

// mapped notes that a file becomes part of the address space. How many of its pages are ever read nobody tells.
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

// isClone reports whether a request of ioctl(2) has the kernel share blocks between files.
func isClone(req uint64) bool {
	return req == unix.FICLONE || req == unix.FICLONERANGE || req == unix.FIDEDUPERANGE
}
