// Package job shows tasks of an open run as Slurm's jobs. It maps what Corral's API tells of a task to a Job, chooses
// the jobs that a command asks for, and prints them as squeue, sacct, sinfo, scontrol and sacctmgr do, to the byte:
// programs read it.
package job

import (
	"time"

	"github.com/corral-pilot/corral/internal/slurm/notation"
)

// A Job is a job of Slurm: one by itself, or a task of an array.
type Job struct {
	ID        int // JobIDRaw: the task's index + 1
	ArrayID   int // the array's, which is the ID of its first task; 0: no array
	ArrayTask int // number in the array, as --array has it
	Spec      Spec
	State     State
	Reason    Reason // why it waits, or why it ended as it did
	Canceller int    // the user who cancelled it; -1: nobody
	Exit      notation.ExitCode
	Node      string // worker; empty before it starts
	Restarts  int
	Times     Times
}

// Times are zero where they have not come yet.
type Times struct{ Submitted, Eligible, Started, Ended time.Time }

// A Spec is what is known of a job when it is submitted, and never changes. It travels in a task's attributes.
type Spec struct {
	Name       string
	User       User
	Partition  string
	Account    string
	Comment    string
	QOS        string
	Command    Command
	Files      Files
	Size       Size
	TimeLimit  time.Duration // 0: none
	Array      string        // what followed --array; its tasks
	Dependency string        // what followed --dependency, in Slurm's form
	Requeue    bool
	Nice       int
	Submitted  time.Time
}

// A User is who submitted a job, on the machine where it was submitted.
type User struct {
	Name, Group string
	UID, GID    int
}

// A Command is what a job runs and how it was asked for.
type Command struct {
	Line   string // script and arguments, absolute; empty for --wrap and standard input
	Submit string // how sbatch was called, as sacct's SubmitLine
	Host   string // where
}

// Files are absolute, with their patterns filled in as far as they are known.
type Files struct{ Directory, Input, Output, Error string }

// Size is what a job takes of a worker.
type Size struct {
	CPUs, Tasks, CPUsPerTask int
	MemoryMiB                int64 // of the whole job, or of each cpu
	MemoryEach               bool
	GPUs                     int
}

// A Task is what Corral's API tells of a task of an open run.
type Task struct {
	Index      int
	State      string // as corral.TaskState
	Cause      string // why its last attempt did not succeed: "", "over-memory", "over-time", "withdrawn", "lost-worker", "never"
	Reason     string
	Exit       int // 128 + n: killed by signal n
	Worker     string
	Begun      int // attempts that a worker was given
	Added      time.Time
	Started    time.Time
	Ended      time.Time
	Attributes map[string]string
}
