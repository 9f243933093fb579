// Package notation reads and writes the small languages in which Slurm's users say things: times, sizes of memory,
// lists of an array's tasks, ids of jobs, dependencies, signals, names of files with % in them, exit codes and the
// #SBATCH lines of scripts.
//
// It refuses input in one of two ways: with an error in Slurm's own words, without a prefix, or with an *Unsupported,
// which names a feature of Slurm that Corral does not have. Nothing here depends on the jobs that exist.
package notation

import "fmt"

// An Unsupported is something of Slurm's that jobs on a personal cluster cannot have.
type Unsupported struct {
	What string // as the user wrote it: "--exclusive", "--array=0-9%2"
	Why  string // a clause: "a job's worker runs others beside it"
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s is not supported on a Corral cluster: %s", e.What, e.Why)
}
