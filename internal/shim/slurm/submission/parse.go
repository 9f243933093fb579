package submission

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// MaxScript is how long a script may be, in bytes.
const MaxScript = 512 << 10

// ErrTooLong has the words of Slurm's daemon for a script that is too long.
var ErrTooLong = Failed(errors.New("Pathname of a file, directory or other parameter too long"))

// A Caller is who called sbatch, and from where.
type Caller struct {
	Environ   []string // NAME=VALUE
	Directory string   // absolute
	Umask     int
}

// A Command is a command line of sbatch: what is needed to find the script whose options are still to be read.
type Command struct {
	Help, Version bool    // and nothing else is wanted
	Wrap          *string // a command line of its own, in place of a script
	Path          string  // of the script; empty: standard input
	Args          []string
	given         []notation.Given
}

// ParseCommand reads a command line, without the command's name. Whatever error it or anything else here returns:
// notation.Message says it as sbatch would.
func ParseCommand(words []string) (*Command, error) {
	given, rest, err := getopt.Parse(words)
	if err != nil {
		return nil, err
	}
	d := draft{}
	for _, g := range given { // all of them, so that what is wrong is said before a script is read
		if err := d.apply(g, ""); err != nil {
			return nil, err
		}
	}
	if len(d.memories) > 1 {
		// Slurm's words
		return nil, errors.New("fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
	}
	c := &Command{Help: d.help, Version: d.version, Wrap: d.wrap, given: given}
	if len(rest) > 0 {
		if c.Wrap != nil {
			// Slurm's words
			return nil, errors.New("Script arguments not permitted with --wrap option")
		}
		c.Path, c.Args = rest[0], rest[1:]
	}
	return c, nil
}

// Submission completes what the command line said by the environment, which overrides the script, which is empty for
// --wrap.
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

// readScript takes the options in the script's #SBATCH lines.
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
			// Slurm's words
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

// readEnvironment takes options from SBATCH_… variables, in the order of the table.
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

// apply takes over one option, which variable named if it is not empty. It adds to an error which option it is about.
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
	case o.ignored != "": // it does no harm
		d.Ignored = append(d.Ignored, what)
		return nil
	}
	err := o.set(d, g.Value)
	number := errNumber{}
	switch {
	case errors.Is(err, errInvalid):
		return fmt.Errorf("Invalid --%s specification", g.Name) // Slurm's words
	case errors.As(err, &number):
		return fmt.Errorf("%w --%s.", number, g.Name) // likewise
	}
	return err
}

// finish fills in what depends on several options, and the defaults.
func (d *draft) finish(c *Command, caller Caller) (*Submission, error) {
	s := &d.Submission
	s.Directory = absolute(caller.Directory, s.Directory)
	switch {
	case s.Name != "":
	case c.Wrap != nil: // as Slurm calls it
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

// complete gives files their default names.
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

// size adds up what several options say of it.
func (d *draft) size() {
	size := &d.Size
	if size.Tasks == 0 {
		size.Tasks = max(1, d.perNode) // on its one node
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
