package notation

import "time"

// An Array is what follows --array: the numbers of an array's tasks, ascending and each once.
type Array struct {
	Text   string // as the user wrote it
	Tasks  []int  // all of them, so at most MaxTask+1
	AtOnce int    // so many of them run at a time; 0: any number
}

// A JobID names a job: one by itself, a whole array, or some of an array's tasks.
type JobID struct {
	Job   int   // its number
	Tasks []int // of the array; nil: the job, or the whole array
}

// Dependencies is what follows --dependency. The zero value waits for nothing.
type Dependencies struct {
	Any  bool         // one of them is enough: they were separated by ?
	List []Dependency // in the order in which they were written
}

// A Dependency is a condition about other jobs, all of which must meet it.
type Dependency struct {
	When DependencyKind // what must have happened
	Jobs []JobID        // none for Singleton
}

// A DependencyKind is what must have happened to a job.
type DependencyKind string

// The kinds that a job can wait for.
const (
	After      DependencyKind = "after"      // started, or was cancelled
	AfterAny   DependencyKind = "afterany"   // ended
	AfterOK    DependencyKind = "afterok"    // ended with status 0; else the dependent never starts
	AfterNotOK DependencyKind = "afternotok" // ended otherwise; else the dependent never starts
	Singleton  DependencyKind = "singleton"  // all earlier jobs with the same name and user ended
)

// A Warning is what follows --signal: a signal that a job gets before its time is over.
type Warning struct {
	Signal int           // its number
	Before time.Duration // the end
	Batch  bool          // for the script alone ("B:"); otherwise for the job's steps, and not for the script
}

// An Export is what follows --export.
type Export struct {
	All   bool     // of the caller's environment
	Names []string // variables that are taken from the caller's
	Set   []string // NAME=VALUE
}

// A Size is what a job takes of a worker, as its user asked for it. It goes along with the job in JSON.
type Size struct {
	CPUs        int   `json:"cpus"`                  // of the whole job: tasks × cpus per task
	Tasks       int   `json:"tasks"`                 // --ntasks, which stay within one worker
	CPUsPerTask int   `json:"cpus_per_task"`         // 0: not said
	MemoryMiB   int64 `json:"memory_mib"`            // of the job, or of each cpu; 0: not said
	MemoryEach  bool  `json:"memory_each,omitempty"` // MemoryMiB is of each cpu
	GPUs        int   `json:"gpus,omitempty"`        // of the whole job, of any kind
}

// Total is the memory of the whole job in MiB; 0: not said.
func (s Size) Total() int64 {
	if s.MemoryEach {
		return s.MemoryMiB * int64(s.CPUs)
	}
	return s.MemoryMiB
}
