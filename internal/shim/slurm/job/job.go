// Package job shows tasks of an open run as Slurm's jobs. It maps what Corral's API tells of a task to a Job, chooses
// the jobs that a command asks for, and prints them as squeue, sacct, sinfo, scontrol and sacctmgr do, to the byte:
// programs read it.
package job

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Job is a job of Slurm: one by itself, or a task of an array.
type Job struct {
	ID        int               // JobIDRaw
	ArrayID   int               // the array's, which is the ID of its first task; 0: no array
	ArrayTask int               // number in the array, as --array has it
	Name      string            // of the job, which several may share
	Spec      *Spec             // tasks of an array may share it; never changed
	State     State             // as squeue -t has it
	Reason    Reason            // why it waits, or why it ended as it did
	Exit      notation.ExitCode // of the script
	Node      string            // worker; empty before it starts
	Restarts  int               // times that it was begun again
	Priority  int64             // of jobs that wait, the higher goes first
	Times     Times             // as far as they have come
}

// Times are zero where they have not come yet: when a job that waits for others may start is not known.
type Times struct{ Submitted, Eligible, Started, Ended time.Time }

// A Spec is what is known of a job when it is submitted, and never changes. It travels in an attribute of a task; all
// tasks of an array have the same.
type Spec struct {
	User       User          // who submitted it
	Partition  string        // the cluster
	Account    string        // -A, which nothing is billed to
	Comment    string        // --comment: Snakemake has its rules there
	QOS        string        // -q; empty: "normal"
	Command    Command       // what it runs
	Files      Files         // where it runs, and writes to
	Size       notation.Size // what it takes
	TimeLimit  time.Duration // 0: none
	Array      string        // what followed --array; empty: no array
	Dependency string        // conditions as in "afterok:12,afterany:13_*"
	KillOrphan bool          // cancelled, rather than pending for good, once its dependencies cannot be met
	Requeue    bool          // begun again if its worker is lost
	Nice       int           // how much later than others
}

// A User is who submitted a job, on the machine where it was submitted.
type User struct {
	Name, Group string
	UID, GID    int
}

// A Command is what a job runs and how it was asked for.
type Command struct {
	Line   string // script and arguments, absolute; empty for --wrap and standard input
	Submit string // how sbatch was called
	Host   string // where
}

// Files are absolute. Names of outputs may hold patterns: each task of an array has its own.
type Files struct{ Directory, Input, Output, Error string }
