// Package job displays the tasks of an open run as Slurm's jobs. It converts tasks from Corral's API to Jobs, selects
// the jobs for a command, and prints them exactly like squeue, sacct, sinfo, scontrol and sacctmgr, because programs
// parse the output.
package job

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Job is a job of Slurm: a single job, or a task of an array.
type Job struct {
	ID        int               // JobIDRaw
	ArrayID   int               // the array's id, which is the ID of its first task; 0: not in an array
	ArrayTask int               // number of the task in the array, as in --array
	Name      string            // several jobs may share it
	Spec      *Spec             // tasks of an array may share it; never changed
	State     State             // as in squeue -t
	Reason    Reason            // why it waits, or why it failed
	Exit      notation.ExitCode // of the script
	Node      string            // worker; empty before it starts
	Restarts  int               // number of restarts
	Priority  int64             // jobs with a higher priority start first
	Times     Times             // times that are not known yet are zero
}

// Times contains the times of a job's events. A time that is not known yet is zero: the start of a job that waits for
// others cannot be predicted.
type Times struct{ Submitted, Eligible, Started, Ended time.Time }

// A Spec is the information about a job at its submission, which never changes. It is stored in an attribute of a task;
// all tasks of an array have the same Spec.
type Spec struct {
	User       User          // who submitted it
	Partition  string        // the cluster
	Account    string        // -A; nothing is billed to it
	Comment    string        // --comment: Snakemake stores its rules there
	QOS        string        // -q; empty: "normal"
	Command    Command       // the command that it runs
	Files      Files         // where it runs, and its files
	Size       notation.Size // the resources that it uses
	TimeLimit  time.Duration // 0: none
	Array      string        // argument of --array; empty: not an array
	Dependency string        // conditions as in "afterok:12,afterany:13_*"
	KillOrphan bool          // cancelled, instead of pending forever, when its dependencies can no longer be met
	Requeue    bool          // restarted if its worker is lost
	Nice       int           // the amount by which its priority is lowered
}

// A User is the user who submitted a job, on the machine of the submission.
type User struct {
	Name, Group string
	UID, GID    int
}

// A Command is the command that a job runs and the command line that submitted it.
type Command struct {
	Line   string // script and arguments, absolute; empty for --wrap and standard input
	Submit string // the command line of sbatch
	Host   string // the host of the submission
}

// Files are absolute paths. Names of outputs may contain patterns: each task of an array has its own files.
type Files struct{ Directory, Input, Output, Error string }
