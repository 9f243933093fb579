package submission

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// MaxScript is the maximum length of a script, in bytes.
const MaxScript = 512 << 10

// ErrTooLong is the error of Slurm's daemon for a script that is too long.
var ErrTooLong = Failed(errors.New("Pathname of a file, directory or other parameter too long"))

// A Caller describes the process that called sbatch.
type Caller struct {
	Environ   []string // NAME=VALUE
	Directory string   // absolute
	Umask     int
}

// A Command is a command line of sbatch, parsed as far as necessary to find the script, which may contain further
// options.
type Command struct {
	Help, Version bool    // only this is requested
	Wrap          *string // a command line in place of a script
	Path          string  // path of the script; empty: standard input
	Args          []string
	given         []notation.Given
}

// ParseCommand parses a command line, without the command's name. notation.Message formats the errors of this package
// as sbatch would print them.
func ParseCommand(words []string) (*Command, error) {
	given, rest, err := getopt.Parse(words)
	if err != nil {
		return nil, err
	}
	d := draft{}
	for _, g := range given { // all options, so that errors are reported before a script is read
		if err := d.apply(g, ""); err != nil {
			return nil, err
		}
	}
	if len(d.memories) > 1 {
		// Slurm's wording
		return nil, errors.New("fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
	}
	c := &Command{Help: d.help, Version: d.version, Wrap: d.wrap, given: given}
	if len(rest) > 0 {
		if c.Wrap != nil {
			// Slurm's wording
			return nil, errors.New("Script arguments not permitted with --wrap option")
		}
		c.Path, c.Args = rest[0], rest[1:]
	}
	return c, nil
}

// Submission adds the options from the environment and from the script. The environment overrides the script, and the
// command line overrides both. The argument script is empty for --wrap.
func (c *Command) Submission(caller Caller, script string) (*Submission, error) {
	d := draft{}
	d.Limits.Requeue, d.Limits.Rlimits, d.Limits.Umask = true, AllRlimits, caller.Umask
	d.Script, d.Path, d.Args = script, c.Path, c.Args
	if c.Wrap != nil {
		d.Script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + *c.Wrap + "\n"
	}
	if len(d.Script) > MaxScript {
		return nil, ErrTooLong
	}
	if err := notation.CheckScript(d.Script); err != nil {
		return nil, err
	}
	if c.Wrap == nil {
		if err := d.readScript(); err != nil {
			return nil, err
		}
	}
	if err := d.readEnvironment(caller.Environ); err != nil {
		return nil, err
	}
	for _, g := range c.given {
		if err := d.apply(g, ""); err != nil {
			return nil, err
		}
	}
	return d.finish(c, caller)
}

// readScript applies the options in the script's #SBATCH lines.
func (d *draft) readScript() error {
	directives, err := notation.Directives(d.Script)
	if err != nil {
		path := d.Path
		if path == "" {
			path = "sbatch"
		}
		return fmt.Errorf("fatal: %s: %w", path, err)
	}
	for _, line := range directives {
		given, rest, err := getopt.Parse(line.Words)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			// Slurm's wording
			return fmt.Errorf("Invalid directive found in batch script: %s", rest[0])
		}
		for _, g := range given {
			if err := d.apply(g, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEnvironment applies options from SBATCH_… variables, in the order of the table.
func (d *draft) readEnvironment(environ []string) error {
	values := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "S") {
			values[name] = value
		}
	}
	for i := range options {
		for name := range strings.FieldsSeq(options[i].env) {
			value, ok := values[name]
			if !ok {
				continue
			}
			if err := d.apply(notation.Given{Name: options[i].Long, Value: value}, name); err != nil {
				return err
			}
		}
	}
	if mask, err := strconv.ParseUint(values["SLURM_UMASK"], 8, 9); err == nil {
		d.Limits.Umask = int(mask)
	}
	return nil
}

// apply applies one option, which was set by the given variable unless variable is empty. Errors name the option.
func (d *draft) apply(g notation.Given, variable string) error {
	o := byName[g.Name]
	what := show(g)
	if variable != "" {
		what = variable + "=" + g.Value
	}
	switch {
	case o.refused != "": // by name
		if o.unless != nil && o.unless(g.Value) {
			return nil
		}
		return &notation.Unsupported{What: what, Why: o.refused}
	case o.ignored != "": // it is harmless
		d.Ignored = append(d.Ignored, what)
		return nil
	}
	err := o.set(d, g.Value)
	number := errNumber{}
	switch {
	case errors.Is(err, errInvalid):
		return fmt.Errorf("Invalid --%s specification", g.Name) // Slurm's wording
	case errors.As(err, &number):
		return fmt.Errorf("%w --%s.", number, g.Name) // likewise
	}
	return err
}

// finish sets the values that depend on several options, and the defaults.
func (d *draft) finish(c *Command, caller Caller) (*Submission, error) {
	s := &d.Submission
	s.Directory = absolute(caller.Directory, s.Directory)
	switch {
	case s.Name != "":
	case c.Wrap != nil: // Slurm's name for it
		s.Name = "wrap"
	case c.Path != "":
		s.Name = filepath.Base(c.Path)
	default: // from standard input
		s.Name = "sbatch"
	}
	s.Stdio.complete(s.Array != nil)
	d.size()
	export := notation.ParseExport(d.export)
	s.Environment.Variables = export.Environment(caller.Environ)
	if d.export != "" && !strings.EqualFold(d.export, "ALL") {
		s.Environment.Export = d.export
	}
	return s, nil
}

func absolute(directory, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(directory, path)
}

// complete sets the default names of files.
func (f *Stdio) complete(array bool) {
	switch {
	case f.Output != "":
	case array: // each task has its own
		f.Output = "slurm-%A_%a.out"
	default:
		f.Output = "slurm-%j.out"
	}
	if f.Error == "none" {
		f.Error = "/dev/null"
	}
	if f.Output == "none" {
		f.Output = "/dev/null"
	}
	if f.Input == "none" {
		f.Input = ""
	}
}

// size combines the options that define the size.
func (d *draft) size() {
	size := &d.Size
	if size.Tasks == 0 {
		size.Tasks = max(1, d.perNode) // on its single node
	}
	if d.gpuTasks > 0 {
		size.GPUs = min(d.gpuTasks*size.Tasks, 1<<20)
	}
	size.CPUs = max(size.Tasks*max(1, size.CPUsPerTask), d.minCPUs, d.perGPU*size.GPUs)
	switch last := d.memories; {
	case len(last) == 0:
	case last[len(last)-1] == "gpu":
		size.MemoryMiB *= int64(min(size.GPUs, 1<<20))
	default:
		size.MemoryEach = last[len(last)-1] == "cpu"
	}
}
