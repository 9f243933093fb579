package ptrace

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// books records the calls of a trace: it contains a ledger, and buffers that allow it to look up the targets of
// descriptors without an allocation for each call.
type books struct {
	ledger *ledger
	path   [48]byte
	target [4096]byte
}

// standards records the targets of the command's three standard streams.
func (x *books) standards(pid int) {
	for fd, name := range []string{"stdin", "stdout", "stderr"} {
		x.ledger.standard(fd, name, string(x.link(pid, fd)))
	}
}

// entryOf returns the entry for the target of a descriptor; nil if the descriptor does not exist, or if its target is a
// directory, from which no bytes can be read. It is called for each call that moves bytes, so it needs only one system
// call and no memory if the target is already known.
func (x *books) entryOf(tid, fd int) *entry {
	if fd < 0 {
		return nil
	}
	target := x.link(tid, fd)
	if len(target) == 0 {
		return nil
	}
	if e := x.ledger.stream(fd, target); e != nil {
		return e
	}
	target = bytes.TrimSuffix(target, removed)             // one entry for a file, removed or not
	if e, known := x.ledger.files[string(target)]; known { // the compiler does not copy the key for a lookup
		return e
	}
	kind, size := x.kindOf(tid, fd, string(target))
	if kind == "" {
		return nil
	}
	return x.ledger.add(string(target), kind, size)
}

// settle records the sizes of the files that were written to. A file that has been removed since has size -1.
func (x *books) settle() {
	for path, e := range x.ledger.files {
		if e.Kind != trace.Regular || e.Written == 0 {
			continue
		}
		var st syscall.Stat_t
		if e.Size = -1; syscall.Stat(path, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG {
			e.Size = st.Size
		}
	}
}

// link reads /proc/TID/fd/FD. The result is valid until the next call.
func (x *books) link(tid, fd int) []byte {
	n, _, errno := unix.RawSyscall6(unix.SYS_READLINKAT, atCwd, uintptr(unsafe.Pointer(&x.fdPath(tid, fd)[0])),
		uintptr(unsafe.Pointer(&x.target[0])), uintptr(len(x.target)), 0, 0)
	if errno != 0 {
		return nil
	}
	return x.target[:n]
}

// removed is the suffix that the kernel appends to the name of a removed file.
var removed = []byte(" (deleted)")

// atCwd is AT_FDCWD for a raw system call.
const atCwd = ^uintptr(99)

// fdPath returns the path of a descriptor, terminated by a zero byte.
func (x *books) fdPath(tid, fd int) []byte {
	b := append(x.path[:0], "/proc/"...)
	b = append(strconv.AppendInt(b, int64(tid), 10), "/fd/"...)
	b = append(strconv.AppendInt(b, int64(fd), 10), 0)
	return b
}

// kindOf returns the kind of a descriptor's target, and the size if it is a regular file, otherwise -1. The kind is
// empty for a directory, and for a target that has disappeared.
func (x *books) kindOf(tid, fd int, target string) (kind trace.Kind, size int64) {
	var st syscall.Stat_t
	path := x.fdPath(tid, fd)
	if syscall.Stat(string(path[:len(path)-1]), &st) != nil {
		return "", -1
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		if strings.HasPrefix(target, "/memfd:") {
			return trace.Other, -1
		}
		return trace.Regular, st.Size
	case syscall.S_IFIFO:
		return trace.Pipe, -1
	case syscall.S_IFSOCK:
		return trace.Socket, -1
	case syscall.S_IFDIR:
		return "", -1
	case syscall.S_IFCHR:
		if isTerminal(unix.Major(uint64(st.Rdev))) {
			return trace.Terminal, -1
		}
	}
	return trace.Other, -1
}

// isTerminal reports whether a character device is a terminal, by its major number: 4 and 5 are consoles, serial lines
// and /dev/tty, 136 to 143 pseudo-terminals.
func isTerminal(major uint32) bool { return major == 4 || major == 5 || major >= 136 && major <= 143 }

// writable reports whether a descriptor is open for writing, according to the mode of its link.
func writable(tid, fd int) bool {
	var st syscall.Stat_t
	path := "/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(fd)
	return syscall.Lstat(path, &st) == nil && st.Mode&syscall.S_IWUSR != 0
}

// sizes returns the total number of bytes in messages whose headers, of type struct mmsghdr, are at the given address.
func sizes(tid int, at uintptr, messages int) (sum int64) {
	const size, length = 64, 56 // size of a header, and the offset of the length in it
	headers := make([]byte, size*max(0, min(messages, maxMessages)))
	if len(headers) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &headers[0], Len: uint64(len(headers))}}
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: at, Len: len(headers)}}, 0)
	if err != nil {
		return 0
	}
	for ; len(headers) >= size && n >= size; n -= size {
		sum += int64(*(*uint32)(unsafe.Pointer(&headers[length])))
		headers = headers[size:]
	}
	return sum
}

// maxMessages is the maximum number of messages that the kernel moves in one call.
const maxMessages = 1024
