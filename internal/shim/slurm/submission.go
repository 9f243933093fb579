package slurm

// sbatch has options in the command line, the environment, and the script; each of these overrides the next. This file
// combines them. It has no side effects.

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// A submission is a job as requested by sbatch's user, complete and checked. The parts that depend on existing jobs
// (dependencies) or on the cluster (partition, size) are not checked yet.
type submission struct {
	spec  spec       // the options that are shown
	order step.Order // the options for the job's worker; file names are relative to its directory

	diskMiB      int64                 // --tmp; 0: not given
	array        *notation.Array       // nil: a single job
	dependencies notation.Dependencies // all of them must be met
	partition    string
	clusters     string   // a list of names; empty: the only cluster
	rlimits      []string // limits, of step.Rlimits, that the job inherits from sbatch's process

	// Requests for the time after the submission, or in place of it.
	parsable, quiet, wait, testOnly, help, version bool

	// The options that are combined when all are known. Later options override earlier ones.
	given    []notation.Given // in the command line
	wrap     *string          // a command line in place of a script; nil: there is a script
	export   string           // argument of --export
	memories []string         // the memory options given, the latest last
	perGPU   int              // CPUs per GPU
	perNode  int              // tasks per node
	minCPUs  int
	gpuTasks int // gpus per task
}

// maxScript is the maximum length of a script, in bytes.
const maxScript = 512 << 10

// errTooLong is the error of Slurm's daemon for a script that is too long.
var errTooLong = submitFailed(errors.New("Pathname of a file, directory or other parameter too long"))

// submitFailed adds sbatch's prefix for errors of the daemon that accepts jobs. An Unsupported error is returned
// unchanged.
func submitFailed(err error) error {
	if unsupported := (*notation.Unsupported)(nil); err == nil || errors.As(err, &unsupported) {
		return err
	}
	return fmt.Errorf("Batch job submission failed: %w", err) // Slurm's wording
}

// A caller describes the process that called sbatch.
type caller struct {
	environ   []string // NAME=VALUE
	directory string   // absolute
	umask     int
}

// parseSbatch parses a command line of sbatch, without its name, as far as necessary to find the script, which may
// contain further options. complete parses the rest.
func parseSbatch(words []string) (*submission, error) {
	s := &submission{}
	given, rest, err := sbatchOptions.Parse(words)
	if err != nil {
		return nil, err
	}
	s.given = given
	if err := sbatchOptions.Apply(s, given...); err != nil { // before a script is read
		return nil, err
	}
	if len(s.memories) > 1 {
		// Slurm's wording, here and below
		return nil, errors.New("fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
	}
	if len(rest) > 0 {
		if s.wrap != nil {
			return nil, errors.New("Script arguments not permitted with --wrap option")
		}
		s.order.Script.Name, s.order.Script.Args = rest[0], rest[1:]
	}
	return s, nil
}

// complete returns the submission with the options of the environment and of the script, too. script is empty for
// --wrap.
func (s *submission) complete(from caller, script string) (*submission, error) {
	full := &submission{rlimits: step.Rlimits()}
	full.spec.Requeue, full.order.Limits.Umask, full.order.Script = true, from.umask, s.order.Script
	if s.wrap != nil {
		script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + *s.wrap + "\n"
	}
	if full.order.Script.Text = script; len(script) > maxScript {
		return nil, errTooLong
	}
	if err := notation.CheckScript(script); err != nil {
		return nil, err
	}
	if s.wrap == nil {
		if err := full.directives(); err != nil {
			return nil, err
		}
	}
	values := map[string]string{}
	for _, entry := range from.environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	if err := sbatchOptions.Apply(full, append(sbatchOptions.Environment(values), s.given...)...); err != nil {
		return nil, err
	}
	if mask, err := strconv.ParseUint(values["SLURM_UMASK"], 8, 9); err == nil {
		full.order.Limits.Umask = int(mask)
	}
	full.wrap = s.wrap // it has no effect in a script
	full.finish(from)
	return full, nil
}

// directives applies the options in the script's #SBATCH lines.
func (s *submission) directives() error {
	script := s.order.Script
	lines, err := notation.Directives(script.Text)
	if err != nil {
		return fmt.Errorf("fatal: %s: %w", cmp.Or(script.Name, "sbatch"), err)
	}
	for _, words := range lines {
		rest, err := sbatchOptions.Read(s, words)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("Invalid directive found in batch script: %s", rest[0]) // Slurm's wording
		}
	}
	return nil
}

// finish sets the values that depend on several options, and the defaults.
func (s *submission) finish(from caller) {
	o, show := &s.order, &s.spec
	o.Place.Directory = absolute(from.directory, o.Place.Directory)
	switch {
	case o.Facts.Name != "":
	case s.wrap != nil: // Slurm's name for it
		o.Facts.Name = "wrap"
	case o.Script.Name != "":
		o.Facts.Name = filepath.Base(o.Script.Name)
	default: // from standard input
		o.Facts.Name = "sbatch"
	}
	if s.array != nil {
		o.Array = s.array.Text
	}
	files := &o.Streams
	switch {
	case files.Output != "":
	case s.array != nil: // each task has its own
		files.Output = "slurm-%A_%a.out"
	default:
		files.Output = "slurm-%j.out"
	}
	for _, file := range []*string{&files.Input, &files.Output, &files.Error} {
		if *file == "none" {
			*file = "/dev/null"
		}
	}
	s.size()
	o.Environment = notation.ParseExport(s.export).Environment(from.environ)
	if s.export != "" && !strings.EqualFold(s.export, "ALL") {
		o.Facts.Export = s.export
	}
	// These values are in lists of jobs, and in the job's own environment.
	o.Facts.Account, o.Facts.Size, o.Limits.Time = show.Account, show.Size, show.TimeLimit
	show.Array, show.Directory = o.Array, o.Place.Directory
	// The conditions do not say which of the jobs are arrays.
	show.Dependency = s.dependencies.String()
	show.Input, show.Output, show.Error = s.path(files.Input), s.path(files.Output), s.path(files.Error)
}

// path returns a file's name in the job's directory. It remains a pattern.
func (s *submission) path(name string) string {
	if name == "" {
		return ""
	}
	return absolute(s.order.Place.Directory, name)
}

func absolute(directory, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(directory, path)
}

// size combines the options that define the size.
func (s *submission) size() {
	size := &s.spec.Size
	size.Tasks = cmp.Or(size.Tasks, max(1, s.perNode)) // on its single node
	if s.gpuTasks > 0 {
		size.GPUs = min(s.gpuTasks*size.Tasks, 1<<20)
	}
	size.CPUs = max(size.Tasks*max(1, size.CPUsPerTask), s.minCPUs, s.perGPU*size.GPUs)
	switch last := len(s.memories) - 1; {
	case last < 0:
	case s.memories[last] == "mem-per-gpu":
		size.MemoryMiB *= int64(min(size.GPUs, 1<<20))
	default:
		size.MemoryEach = s.memories[last] == "mem-per-cpu"
	}
}
