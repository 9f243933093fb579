// Package trace records one execution of a command with all of its processes: which process started which, how much
// memory and cpu time each used, and which bytes went through which file, pipe, socket or terminal.
//
// A Trace is created by embedded/ptrace, or read from where one was stored; package profile turns traces into samples.
// The definitions are those of Juve 2012, chapter 5: the runtime is from the start of the first process to the end of
// the last; bytes are summed over processes; the peak of memory is the highest sum of the peaks of processes that were
// alive at once. That peak is an upper bound: pages that processes share count once for each of them, and not all
// processes reach their peak at the same time.
//
// Bytes are those that system calls moved. Bytes that a program accesses through a mapping, or that the kernel moves in
// other ways, are not included. Unaccounted counts how often that happened, so that a 0 can be trusted.
//
// The one invariant: Kinds is complete. Processes and Files are lists of limited length, which come with the number of
// entries left out; the sums by kind of descriptor count everything.
package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Version is the version of the form in which traces are written.
const Version = 1

// A Mode determines how much of an execution was watched.
type Mode string

const (
	Processes Mode = corral.TraceProcesses // life cycles: bytes by process, as the kernel counts them, without files
	IO        Mode = corral.TraceIO        // every system call that moves bytes
)

// A Trace is one execution of a command.
type Trace struct {
	Version        int       `json:"corral_trace"`
	Transformation string    `json:"transformation"` // the kind of task; usually the name of the program
	Run            string    `json:"run,omitempty"`  // the run that it belongs to; empty: the file that it is in
	ID             string    `json:"id"`             // unique in its run
	Mode           Mode      `json:"mode"`
	Argv           []string  `json:"argv"`
	StartedAt      time.Time `json:"started_at"` // of the first process
	EndedAt        time.Time `json:"ended_at"`   // of the last process
	Outcome                  // of the command itself

	Processes []Process `json:"processes"`
	MoreProcs int       `json:"processes_left_out,omitempty"`
	Account             // mode io
	Overhead  Overhead  `json:"overhead"`
}

// An Outcome is how a process ended.
type Outcome struct {
	Exit   int    `json:"exit"` // its status; -1 if a signal ended it
	Signal string `json:"signal,omitempty"`
}

// OK reports whether the process succeeded.
func (o Outcome) OK() bool { return o.Exit == 0 && o.Signal == "" }

// A Process is one that was started in a trace.
type Process struct {
	ID        int           `json:"pid"`
	Parent    int           `json:"parent"` // the process that started it; 0 for the command itself
	Argv      []string      `json:"argv,omitempty"`
	Start     time.Duration `json:"start_ns"` // since StartedAt of the trace
	End       time.Duration `json:"end_ns"`
	Execs     int           `json:"execs"`               // the number of programs that it has executed
	Threads   int           `json:"threads"`             // the total number of threads that it had
	Unwatched bool          `json:"unwatched,omitempty"` // it was killed before anything could be read about it
	Outcome
	Usage
}

// A Usage gives the resources used by a process, without its children.
type Usage struct {
	UserCPU time.Duration `json:"user_cpu_ns"`
	SysCPU  time.Duration `json:"sys_cpu_ns"`

	PeakBytes    int64  `json:"peak_bytes"`        // of its resident set
	VirtualBytes int64  `json:"virtual_bytes"`     // peak of its address space
	PeakBy       PeakBy `json:"peak_by,omitempty"` // empty: not known
	ReadBytes    int64  `json:"read_bytes"`        // by read(2) and the like, as the kernel counts them
	WrittenBytes int64  `json:"written_bytes"`     // likewise; neither includes what socket calls moved
}

// An Account is how much calls moved, and where.
type Account struct {
	Kinds     map[Kind]Sum  `json:"kinds,omitempty"`
	Files     []File        `json:"files,omitempty"`
	MoreCalls int64         `json:"calls_without_file,omitempty"` // the calls that are missing from Files
	Missed    []Unaccounted `json:"unaccounted,omitempty"`
}

// A PeakBy names the source of the memory peak of a process.
type PeakBy string

const (
	ByHighWater PeakBy = "hwm"    // the kernel's high-water mark at its end
	ByRusage    PeakBy = "rusage" // wait4(2), which also counts children that it waited for
)

// A Kind is the kind of object to which a descriptor refers.
type Kind string

// These are the kinds. Std is the three streams with which the command was started, whatever they are and wherever they
// were duplicated.
const (
	Regular  Kind = "file"
	Pipe     Kind = "pipe"
	Socket   Kind = "socket"
	Terminal Kind = "tty"
	Std      Kind = "std"
	Other    Kind = "other"
)

// AllKinds lists the kinds in the order in which they are shown.
var AllKinds = []Kind{Regular, Pipe, Socket, Terminal, Std, Other}

// A Sum is how much calls moved.
type Sum struct {
	Read    int64 `json:"read_bytes"`
	Written int64 `json:"written_bytes"`
	Reads   int64 `json:"reads"` // calls that succeeded
	Writes  int64 `json:"writes"`
}

// Add adds another sum to s.
func (s *Sum) Add(o Sum) {
	s.Read, s.Written, s.Reads, s.Writes = s.Read+o.Read, s.Written+o.Written, s.Reads+o.Reads, s.Writes+o.Writes
}

// A File is one object that descriptors referred to: a file by its path, a pipe or a socket by its number.
type File struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Sum
	Opens  int64  `json:"opens"`
	Mapped int64  `json:"mapped_bytes,omitempty"` // address space that was mapped to it; how much was used is not known
	Size   int64  `json:"size_bytes"`             // of a regular file, when last opened or, if written to, at the end
	Target string `json:"target,omitempty"`       // of a standard stream: what it refers to
}

// Unaccounted counts calls that move bytes which are not in the sums.
type Unaccounted struct {
	Call  string `json:"call"`
	Calls int64  `json:"calls"`
	Bytes int64  `json:"bytes,omitempty"` // that they could have moved at most, if known
}

// Overhead is the cost of tracing to the tracer. A task also loses the time of two switches between processes for each
// stop.
type Overhead struct {
	Stops int64         `json:"stops"`
	CPU   time.Duration `json:"cpu_ns"`
	By    string        `json:"by"` // how the tracer stopped at calls: seccomp, syscall, or none
}

// Runtime returns the time from the start of the first process to the end of the last.
func (t *Trace) Runtime() time.Duration { return t.EndedAt.Sub(t.StartedAt) }

// CPU returns the cpu time of all processes.
func (t *Trace) CPU() (sum time.Duration) {
	for i := range t.Processes {
		sum += t.Processes[i].UserCPU + t.Processes[i].SysCPU
	}
	return sum
}

// Utilization returns CPU ÷ Runtime, which is 2 for two busy cpus; 0 for a trace without duration.
func (t *Trace) Utilization() float64 {
	if t.Runtime() <= 0 {
		return 0
	}
	return t.CPU().Seconds() / t.Runtime().Seconds()
}

// Bytes returns how much was read and written in total. In mode processes it is the kernel's count, without socket
// calls.
func (t *Trace) Bytes() (sum Sum) {
	if t.Mode == IO {
		for _, k := range t.Kinds {
			sum.Add(k)
		}
		return sum
	}
	for i := range t.Processes {
		sum.Read += t.Processes[i].ReadBytes
		sum.Written += t.Processes[i].WrittenBytes
	}
	return sum
}

// Distinct returns a lower bound of the number of bytes that were read in total, each counted once. For a file, it
// counts what was read, or the size of the file if that is less. Bytes from pipes and sockets cannot be read twice. It
// is known only in mode io.
func (t *Trace) Distinct() (bytes int64, ok bool) {
	if t.Mode != IO {
		return 0, false
	}
	bytes = t.Bytes().Read
	for i := range t.Files {
		bytes -= t.Files[i].again()
	}
	return bytes, true
}

// again returns how much was read from a file beyond its size. It is 0 for a file that was also written to, because the
// file may have had other content before.
func (f *File) again() int64 {
	if f.Kind != Regular || f.Written > 0 || f.Size <= 0 { // files of /proc have no size
		return 0
	}
	return max(0, f.Read-f.Size)
}

// Peak returns the largest sum of the peaks of processes that were alive at once: an upper bound of their total at any
// time.
func (t *Trace) Peak() int64 { return t.highest(func(p *Process) int64 { return p.PeakBytes }) }

// Whole reports whether the peak counts all programs: in mode processes it does not if one program replaced another.
func (t *Trace) Whole() bool {
	return t.Mode == IO || !slices.ContainsFunc(t.Processes, func(p Process) bool { return p.Execs > 1 })
}

// Virtual returns the same for their address spaces.
func (t *Trace) Virtual() int64 { return t.highest(func(p *Process) int64 { return p.VirtualBytes }) }

// highest returns the highest sum of size over the processes that are alive at any time. A process that ends at the
// instant at which another begins does not count together with it.
func (t *Trace) highest(size func(*Process) int64) (most int64) {
	type change struct {
		at time.Duration
		by int64
	}
	changes := make([]change, 0, 2*len(t.Processes))
	for i := range t.Processes {
		p := &t.Processes[i]
		changes = append(changes, change{p.Start, size(p)}, change{p.End, -size(p)})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by))
	})
	var sum int64
	for _, c := range changes {
		sum += c.by
		most = max(most, sum)
	}
	return most
}
