package notation

import (
	"strconv"
	"time"
)

// An Array is the argument of --array: the numbers of an array's tasks, ascending and without duplicates.
type Array struct {
	Text   string // as the user wrote it
	Tasks  []int  // all of them, so at most MaxTask+1 entries
	AtOnce int    // maximum number of tasks that may run at a time; 0: any number
}

// A JobID names a single job, a whole array, or some of an array's tasks.
type JobID struct {
	Job   int   // its number
	Tasks []int // of the array; nil: the job, or the whole array
}

// Dependencies is the argument of --dependency. The zero value has no conditions.
type Dependencies struct {
	Any  bool         // one condition is enough: they were separated by ?
	List []Dependency // in the given order
}

// A Dependency is a condition that all of the listed jobs must meet.
type Dependency struct {
	When DependencyKind // the required event
	Jobs []JobID        // none for Singleton
}

// A DependencyKind is the event that a job waits for.
type DependencyKind string

// The kinds of events for which a job can wait. All of the other jobs must have:
const (
	After      DependencyKind = "after"      // started, or were cancelled
	AfterAny   DependencyKind = "afterany"   // ended
	AfterOK    DependencyKind = "afterok"    // ended with status 0; otherwise the dependent job never starts
	AfterNotOK DependencyKind = "afternotok" // ended with any other result; otherwise the dependent job never starts
	Singleton  DependencyKind = "singleton"  // ended, for all earlier jobs with the same name and user
)

// A Warning is the argument of --signal: a signal that a job receives before its time is over.
type Warning struct {
	Signal int           // its number
	Before time.Duration // time before the end
	Batch  bool          // only for the script ("B:"); otherwise for the job's steps, but not for the script
}

// An Export is the argument of --export.
type Export struct {
	All   bool     // the caller's whole environment
	Names []string // variables taken from the caller's environment
	Set   []string // NAME=VALUE
}

// A Size is a job's resources on a worker, as requested by its user. It is stored with the job as JSON.
type Size struct {
	CPUs        int   `json:"cpus"`                  // of the whole job: tasks × CPUs per task
	Tasks       int   `json:"tasks"`                 // --ntasks, all on one worker
	CPUsPerTask int   `json:"cpus_per_task"`         // 0: not given
	MemoryMiB   int64 `json:"memory_mib"`            // of the job, or of each CPU; 0: not given
	MemoryEach  bool  `json:"memory_each,omitempty"` // MemoryMiB is per CPU
	GPUs        int   `json:"gpus,omitempty"`        // of the whole job, of any kind
}

// Total returns the memory of the whole job in MiB; 0: not given.
func (s Size) Total() int64 {
	if s.MemoryEach {
		return s.MemoryMiB * int64(s.CPUs)
	}
	return s.MemoryMiB
}

// NoTask is Slurm's value for the number in its array of a job that is not in an array.
const NoTask = "4294967294"

// An ExitCode describes how a process ended: with a status, or killed by a signal. The zero value means success.
type ExitCode struct{ Status, Signal int }

// String formats the code like Slurm: "7:0", "0:9".
func (c ExitCode) String() string { return strconv.Itoa(c.Status) + ":" + strconv.Itoa(c.Signal) }
