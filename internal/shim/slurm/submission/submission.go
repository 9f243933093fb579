// Package submission parses the options of sbatch from the command line, the environment, and the script; each of these
// overrides the next. It has no side effects: the caller reads the files, and submits the job.
package submission

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Submission is a job as requested by sbatch's user, complete and checked. The caller must check the parts that
// depend on existing jobs (dependencies) or on the cluster (partitions, sizes).
type Submission struct {
	Name   string   // -J, or the name of the program
	Script string   // its text, which begins with #!
	Path   string   // as the user wrote it; empty for --wrap and standard input
	Args   []string // of the script

	Directory string        // absolute
	Stdio     Stdio         // -i, -o, -e
	Size      notation.Size // -c, -n, --mem and similar options
	DiskMiB   int64         // --tmp; 0: not given
	Limits    Limits        // -t and similar options
	Labels    Labels        // -A, -p and similar options
	Placing   Placing       // -d and similar options

	Array       *notation.Array // nil: a single job
	Environment Environment     // as defined by --export
	Answer      Answer          // --parsable and similar options
	Ignored     []string        // accepted options without an effect, as the user wrote them
}

// Stdio names the files of a job's standard streams. Names may contain patterns (notation.Expand) and are relative to
// the submission's directory.
type Stdio struct {
	Input  string // empty: /dev/null
	Output string // "slurm-%j.out" or "slurm-%A_%a.out" by default
	Error  string // empty: the same as Output
	Append bool   // --open-mode=append; otherwise files are truncated
}

// An Environment is the part of the caller's environment that a job receives.
type Environment struct {
	Variables []string // NAME=VALUE; without the variables that Slurm sets in every job
	Export    string   // argument of --export, for SLURM_EXPORT_ENV in the job; empty if not given
}

// Limits are limits and rules for the execution of a job.
type Limits struct {
	Time    time.Duration // 0: none
	Signal  *notation.Warning
	Requeue bool     // restart the job if its worker is lost
	Umask   int      // of the process that called sbatch, or the value of SLURM_UMASK
	Rlimits []string // limits, of AllRlimits, that the job inherits from sbatch's process
}

// Labels are stored and shown, but have no effect.
type Labels struct {
	Account, Comment, Partition, QOS string
}

// Placing specifies where and when a job may start.
type Placing struct {
	Clusters string // a list of names; empty: the only cluster

	// Dependencies must all be met.
	Dependencies notation.Dependencies
	KillInvalid  bool // cancel the job, instead of showing it as pending, once its dependencies cannot be met
	Nice         int  // positive: lower priority
}

// Answer specifies what sbatch does after the submission.
type Answer struct {
	Parsable, Quiet, Wait, TestOnly bool
}
