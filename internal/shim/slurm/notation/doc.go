// Package notation reads and writes the small languages in which Slurm's users say things: times, sizes of memory,
// lists of an array's tasks, ids of jobs, dependencies, signals, names of files with % in them, exit codes and the
// #SBATCH lines of scripts.
//
// What it says no to, it says no to in one of two ways: an error whose words are Slurm's own, without a prefix, or an
// *Unsupported, which names a thing that Slurm could do and Corral cannot. Nothing here knows what jobs there are.
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
