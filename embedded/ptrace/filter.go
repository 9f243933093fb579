package ptrace

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Where struct seccomp_data has what: numbers of 32 bits, and arguments of 64, of which the lower half comes first on
// both architectures.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// What the kernel does with a call.
const (
	let  = unix.SECCOMP_RET_ALLOW
	stop = unix.SECCOMP_RET_TRACE
)

// filter is the program by which the kernel tells the calls to stop at from others. Kernels since 5.11 run it once for
// each number of which the arguments do not matter, and remember what it said. For another architecture all calls stop.
func filter() []unix.SockFilter {
	p := []unix.SockFilter{load(dataArch), branch(unix.BPF_JEQ, nativeArch, 1, 0), end(stop), load(dataNumber)}
	if otherABI < 1<<32 {
		p = append(p, branch(unix.BPF_JGE, otherABI&(1<<32-1), 0, 1), end(stop))
	}
	p = append(p, only(unix.SYS_MMAP,
		load(dataArgs+3*8), branch(unix.BPF_JSET, unix.MAP_ANONYMOUS, 0, 1), end(let), end(stop))...)
	p = append(p, only(unix.SYS_IOCTL, load(dataArgs+1*8), branch(unix.BPF_JEQ, unix.FICLONE, 3, 0),
		branch(unix.BPF_JEQ, unix.FICLONERANGE, 2, 0), branch(unix.BPF_JEQ, unix.FIDEDUPERANGE, 1, 0),
		end(let), end(stop))...)
	for _, nr := range slices.Sorted(maps.Keys(calls)) {
		if nr != unix.SYS_MMAP && nr != unix.SYS_IOCTL {
			p = append(p, branch(unix.BPF_JEQ, uint32(nr), 0, 1), end(stop))
		}
	}
	return append(p, end(let))
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func end(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// branch compares what is loaded with k, and leaves out so many of the instructions that follow: if it holds, or not.
func branch(compare uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | compare, K: k, Jt: yes, Jf: no}
}

// only has a body for one call, which ends in a verdict whatever happens; for others it is left out.
func only(nr uint32, body ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{branch(unix.BPF_JEQ, nr, 0, uint8(len(body)))}, body...)
}
