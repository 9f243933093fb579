// Package trace describes one execution of a command with all of its processes: which process started which, how much
// memory and cpu time each process used, and how many bytes were transferred through each file, pipe, socket or
// terminal.
//
// Workers create a Trace of a task that they trace; Read reads traces from a file, and package workflow/profile
// converts them to samples. Times are durations, and sizes are in bytes. The definitions are those of chapter 5 of Juve
// 2012 (Gideon Juve: Resource Management for Scientific Workflows, PhD thesis, University of Southern California,
// 2012): the runtime is the time from the start of the first process to the end of the last; bytes are summed over
// processes; the memory peak is the highest sum of the peaks of processes that were alive at the same time. The memory
// peak is an upper bound: pages that several processes share count once for each process, and not all processes reach
// their peaks at the same time.
//
// Numbers of bytes include only bytes that were moved by system calls. Bytes that a program accesses through a mapping,
// or that the kernel moves in other ways, are not included. Unaccounted counts how often this happened, so that a 0 is
// reliable.
//
// The one invariant: Kinds is complete. Processes and Files are lists of limited length, and a trace counts what they
// omit; the sums by kind of descriptor include everything.
package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Version is the version of the format in which traces are written.
const Version = 1

// A Mode determines which events of an execution were recorded.
type Mode string

const (
	Processes Mode = corral.TraceProcesses // starts and ends; the kernel's counts of bytes by process, not by file
	IO        Mode = corral.TraceIO        // every system call that moves bytes
)

// A Trace describes one execution of a command.
type Trace struct {
	Version        int       `json:"corral_trace"`
	Transformation string    `json:"transformation"` // the kind of task; usually the name of the program
	Run            string    `json:"run,omitempty"`  // the run to which the task belongs; empty: the trace's file
	ID             string    `json:"id"`             // unique in its run
	Mode           Mode      `json:"mode"`
	Argv           []string  `json:"argv"`
	StartedAt      time.Time `json:"started_at"` // start of the first process
	EndedAt        time.Time `json:"ended_at"`   // end of the last process
	Outcome                  // outcome of the command itself

	Processes []Process `json:"processes"`
	MoreProcs int       `json:"processes_left_out,omitempty"`
	Account             // mode io
	Overhead  Overhead  `json:"overhead"`
}

// An Outcome describes how a process ended.
type Outcome struct {
	Exit   int    `json:"exit"` // its exit status; -1 if a signal ended it
	Signal string `json:"signal,omitempty"`
}

// OK reports whether the process succeeded.
func (o Outcome) OK() bool { return o.Exit == 0 && o.Signal == "" }

// A Process describes a process that ran during the traced execution.
type Process struct {
	ID        int           `json:"pid"`
	Parent    int           `json:"parent"` // the process that started it; 0 for the command itself
	Argv      []string      `json:"argv,omitempty"`
	Start     time.Duration `json:"start_ns"` // since StartedAt of the trace
	End       time.Duration `json:"end_ns"`
	Execs     int           `json:"execs"`               // the number of programs that it executed
	Threads   int           `json:"threads"`             // the total number of threads that it had
	Unwatched bool          `json:"unwatched,omitempty"` // it was killed before any of its data could be read
	Outcome
	Usage
}

// A Usage holds the resources used by a process, without its children.
type Usage struct {
	UserCPU time.Duration `json:"user_cpu_ns"`
	SysCPU  time.Duration `json:"sys_cpu_ns"`

	PeakBytes    int64  `json:"peak_bytes"`        // peak of its resident set
	VirtualBytes int64  `json:"virtual_bytes"`     // peak of its address space
	PeakBy       PeakBy `json:"peak_by,omitempty"` // empty: not known
	ReadBytes    int64  `json:"read_bytes"`        // bytes read by read(2) and similar calls, as counted by the kernel
	WrittenBytes int64  `json:"written_bytes"`     // bytes written, likewise; both exclude bytes moved by socket calls
}

// An Account holds the numbers of bytes that system calls moved, by kind of object and by file.
type Account struct {
	Kinds     map[Kind]Sum  `json:"kinds,omitempty"`
	Files     []File        `json:"files,omitempty"`
	MoreCalls int64         `json:"calls_without_file,omitempty"` // number of calls that are missing from Files
	Missed    []Unaccounted `json:"unaccounted,omitempty"`
}

// A PeakBy names the source of the memory peak of a process.
type PeakBy string

const (
	ByHighWater PeakBy = "hwm"    // the kernel's high-water mark at the end of the process
	ByRusage    PeakBy = "rusage" // wait4(2), which also counts children for which the process waited
)

// A Kind is the kind of object to which a descriptor refers.
type Kind string

// These are the kinds. Std stands for the three streams with which the command was started, whatever they refer to,
// including duplicates of their descriptors.
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

// A Sum holds the numbers of bytes that calls moved, and the numbers of these calls.
type Sum struct {
	Read    int64 `json:"read_bytes"`
	Written int64 `json:"written_bytes"`
	Reads   int64 `json:"reads"` // number of successful calls
	Writes  int64 `json:"writes"`
}

// Add adds another sum to s.
func (s *Sum) Add(o Sum) {
	s.Read, s.Written, s.Reads, s.Writes = s.Read+o.Read, s.Written+o.Written, s.Reads+o.Reads, s.Writes+o.Writes
}

// A File describes one object to which descriptors referred: a file, identified by its path, or a pipe or a socket,
// identified by its number.
type File struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Sum
	Opens  int64  `json:"opens"`
	Mapped int64  `json:"mapped_bytes,omitempty"` // size of the mappings of it; how much of them was used is not known
	Size   int64  `json:"size_bytes"`             // of a regular file, when last opened or, if written to, at the end
	Target string `json:"target,omitempty"`       // the object to which a standard stream refers
}

// Unaccounted counts the calls of one kind that moved bytes not included in the sums.
type Unaccounted struct {
	Call  string `json:"call"`
	Calls int64  `json:"calls"`
	Bytes int64  `json:"bytes,omitempty"` // maximum number of bytes that they could have moved, if known
}

// Overhead is the cost of tracing in the tracer. In addition, each stop costs the task the time of two context
// switches.
type Overhead struct {
	Stops int64         `json:"stops"`
	CPU   time.Duration `json:"cpu_ns"`
	By    string        `json:"by"` // how the tracer stopped at calls: seccomp, syscall, or none
}

// Runtime returns the time from the start of the first process to the end of the last.
func (t *Trace) Runtime() time.Duration { return t.EndedAt.Sub(t.StartedAt) }

// CPU returns the total cpu time of all processes.
func (t *Trace) CPU() (sum time.Duration) {
	for i := range t.Processes {
		sum += t.Processes[i].UserCPU + t.Processes[i].SysCPU
	}
	return sum
}

// Utilization returns CPU ÷ Runtime, which is 2 for two busy cpus, or 0 for a trace without duration.
func (t *Trace) Utilization() float64 {
	if t.Runtime() <= 0 {
		return 0
	}
	return t.CPU().Seconds() / t.Runtime().Seconds()
}

// Bytes returns the total numbers of bytes read and written. In mode processes the kernel's numbers are used, which
// exclude socket calls.
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

// Distinct returns a lower bound on the number of distinct bytes that were read, i.e. each byte counts once. For a
// file, it counts the bytes read, or the size of the file if that is less. Bytes from pipes and sockets cannot be read
// twice. The number is known only in mode io; otherwise ok is false.
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

// again returns the number of bytes that were read from a file beyond its size. It returns 0 for a file that was also
// written to, because the file may have had different contents before.
func (f *File) again() int64 {
	if f.Kind != Regular || f.Written > 0 || f.Size <= 0 { // files of /proc have no size
		return 0
	}
	return max(0, f.Read-f.Size)
}

// Peak returns the largest sum of the memory peaks of processes that were alive at the same time, which is an upper
// bound on their total memory at any time.
func (t *Trace) Peak() int64 { return t.highest(func(p *Process) int64 { return p.PeakBytes }) }

// Whole reports whether the peak includes all programs: in mode processes it does not if a program replaced another in
// a process.
func (t *Trace) Whole() bool {
	return t.Mode == IO || !slices.ContainsFunc(t.Processes, func(p Process) bool { return p.Execs > 1 })
}

// Virtual returns the largest sum of the peaks of the address spaces of processes that were alive at the same time.
func (t *Trace) Virtual() int64 { return t.highest(func(p *Process) int64 { return p.VirtualBytes }) }

// highest returns the highest sum, at any time, of size over the processes that are alive. If one process ends at the
// instant at which another begins, the two are not counted as alive at the same time.
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
