// Package submission reads what a user asks of sbatch: on its command line, in the environment, and in the script, each
// of which overrides what the next says. It decides, and does nothing: whoever calls it reads the files, and submits.
package submission

import (
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Submission is a job as sbatch's user has asked for it, complete and checked. What depends on which jobs there are
// (dependencies) or on the cluster (partitions, sizes) is for the caller to check.
type Submission struct {
	Name   string   // -J, or what is run
	Script string   // its text, which begins with #!
	Path   string   // as the user wrote it; empty for --wrap and standard input
	Args   []string // of the script

	Directory string        // absolute
	Stdio     Stdio         // -i, -o, -e
	Size      notation.Size // -c, -n, --mem and their like
	DiskMiB   int64         // --tmp; 0: not said
	Limits    Limits        // -t and the like
	Labels    Labels        // -A, -p and the like
	Placing   Placing       // -d and the like

	Array       *notation.Array // nil: one job
	Environment Environment     // as --export has it
	Answer      Answer          // --parsable and the like
	Ignored     []string        // options that were accepted and do nothing here, as the user wrote them
}

// Stdio says where a job's standard streams lie. Names may hold patterns (notation.Pattern) and are relative to the
// submission's directory.
type Stdio struct {
	Input  string // empty: /dev/null
	Output string // "slurm-%j.out" or "slurm-%A_%a.out" if the user says nothing
	Error  string // empty: joined to Output
	Append bool   // --open-mode=append; otherwise files are truncated
}

// An Environment is what a job gets of the environment of whoever called sbatch.
type Environment struct {
	Variables []string // NAME=VALUE; without what Slurm sets in every job
	Export    string   // what followed --export: SLURM_EXPORT_ENV in the job; empty if nothing did
}

// Limits are what happens to a job in the course of time.
type Limits struct {
	Time    time.Duration // 0: none
	Signal  *notation.Warning
	Requeue bool     // run again if its worker is lost
	Umask   int      // of the process that called sbatch, or what SLURM_UMASK says
	Rlimits []string // limits of sbatch's process that the job takes over, of AllRlimits
}

// Labels are kept and shown, and mean nothing here.
type Labels struct {
	Account, Comment, Partition, QOS string
}

// Placing says where and when a job may start.
type Placing struct {
	Clusters string // a list of names; empty: the one there is

	// Dependencies must all hold.
	Dependencies notation.Dependencies
	KillInvalid  bool // cancel the job, rather than show it as waiting, once its dependencies cannot be met
	Nice         int  // positive: later than others
}

// Answer says what sbatch does once the job is submitted.
type Answer struct {
	Parsable, Quiet, Wait, TestOnly bool
}
