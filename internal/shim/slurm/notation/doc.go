// Package notation parses and formats the notations of Slurm's users: command lines, times, sizes of memory, lists of
// an array's tasks, ids of jobs, dependencies, signals, file names with %, exit codes and the #SBATCH lines of scripts.
//
// It refuses input in one of two ways: with an error in Slurm's wording, without a prefix, or with an *Unsupported,
// which names a feature of Slurm that Corral does not support. The package is independent of the existing jobs.
package notation

import "fmt"

// An Unsupported is the error for a feature of Slurm that Corral does not support.
type Unsupported struct {
	What string // as the user wrote it: "--exclusive", "--array=0-9%2"
	Why  string // a clause: "a job's worker runs others beside it"
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s is not supported on a Corral cluster: %s", e.What, e.Why)
}
