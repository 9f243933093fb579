package ptrace

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Numbers have 32 bits; arguments have 64, with the lower half first on both
// architectures.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// Verdicts of a filter.
const (
	let  = unix.SECCOMP_RET_ALLOW
	stop = unix.SECCOMP_RET_TRACE
)

// filter returns the program by which the kernel selects the calls to stop at. If the arguments of a call do not
// matter, kernels since 5.11 run the program once for each number and cache the verdict. The process stops at all calls
// of another architecture.
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

// branch compares the loaded value with k. It skips the number of instructions given by yes if the comparison holds,
// and otherwise the number given by no.
func branch(compare uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | compare, K: k, Jt: yes, Jf: no}
}

// only returns instructions that run body for one call and skip it for all others; body must end in a verdict.
func only(nr uint32, body ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{branch(unix.BPF_JEQ, nr, 0, uint8(len(body)))}, body...)
}
