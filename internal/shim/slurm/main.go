// Package slurm contains the commands of the Slurm shim: sbatch and similar commands, with which programs written for
// Slurm run their jobs on a Corral cluster.
//
// All jobs of a Folder are tasks of one open run. A command finds its folder by the name under which it was called,
// parses its options (each command has a table of them; package notation implements Slurm's syntax), and sends corrald
// one or two requests. It prints jobs exactly like Slurm, because programs parse the output. It stores no state of its
// own. A job's additional data travels with its task: package step, the counterpart of sbatch, runs the job on a
// worker. It is a package of its own because the pilot contains it, and must not contain the client of corrald.
//
// The invariant: if a feature of Slurm is not supported by Corral, it is refused by name, before anything is changed.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// Stdio holds the standard streams of a command.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// A call is one execution of a command. It begins with the command line from the shell. After the command line has been
// checked, open sets the folder and the client: errors in the command line are reported without contacting corrald.
type call struct {
	Stdio
	ctx    context.Context // it does not end: an interrupt ends the process
	name   string          // the command's name, without its folder
	args   []string
	at     string // the name by which it was called, which leads to the folder
	folder Folder
	client *api.Client
	over   bool   // the folder's run has ended: no more tasks will begin
	title  string // the cluster if it was named: its name is printed above lists
}

// Names returns the names of the commands in a folder.
func Names() []string { return slices.Sorted(maps.Keys(commands)) }

// commands maps the names under which the program can be called.
var commands = map[string]func(*call) error{
	"sbatch": sbatch, "scancel": scancel, "squeue": squeue, "sacct": sacct, "sinfo": sinfo, "srun": srun,
	"sacctmgr": sacctmgr, "scontrol": scontrol,
}

// An exit ends a command with a status, without a message.
type exit int

func (e exit) Error() string { return fmt.Sprint("exit status ", int(e)) }

// Main runs the command named by the first word of a command line, and returns the exit status.
func Main(words []string, std Stdio) int {
	c := &call{Stdio: std, ctx: context.Background(), at: words[0], name: filepath.Base(words[0]), args: words[1:]}
	command, ok := commands[c.name]
	if !ok {
		fmt.Fprintf(std.Err, "%s: call it by one of the names %s, as in a folder of `corral shim slurm`\n",
			c.name, strings.Join(Names(), ", "))
		return 1
	}
	// A command that has printed all its output itself, or passes on a job's exit status, returns an exit. Anything
	// else is an error, in Slurm's wording if Slurm has such an error, always with exit status 1: clients check for no
	// other status.
	err := command(c)
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(std.Err, notation.Message(c.name, err))
	return 1
}

// release is the emulated release of Slurm, as printed by --version.
const release = "22.05.8"

// tellOther prints the version or the usage of a command. The version is Slurm's, because clients choose their options
// accordingly.
func (c *call) tellOther(what string) error {
	if what == "version" {
		fmt.Fprintln(c.Out, "slurm-wlm", release)
		return exit(0)
	}
	const usage = "Usage: %[1]s [OPTIONS]\nSee the manual page of Slurm's %[1]s, and docs/slurm-shim.md of Corral.\n"
	fmt.Fprintf(c.Out, usage, c.name)
	return exit(0)
}

// open finds the folder of a call, creates a client for its corrald, and requests the folder's run.
func (c *call) open() (err error) {
	if c.folder, err = Found(c.at, os.Getenv); err != nil {
		return err
	}
	if c.folder.Run == 0 {
		return corral.ErrorAt(corral.NotFound, c.folder.Path,
			"the shim is incomplete: run `corral shim slurm %s` again", c.folder.Path)
	}
	if c.client, err = api.New(c.folder.Server); err != nil {
		return err
	}
	run, err := untilAnswered(c, func() (corral.Run, error) { return c.client.Run(c.ctx, c.folder.Run) })
	if corral.KindOf(err) == corral.NotFound || err == nil && !c.folder.Has(run) {
		return c.folder.Gone()
	}
	c.over = err == nil && run.State.Over()
	return err
}

// patience is the time for which a command repeats its request if corrald does not answer: corrald may have been
// killed, and may soon be restarted.
const patience = 5 * time.Minute

// tellAfter is the length of a pause between requests from which on a command prints that it is waiting for corrald.
const tellAfter = time.Second

// untilAnswered repeats a request until corrald answers. Requests that make changes contain a key, so that they take
// effect only once.
func untilAnswered[T any](c *call, ask func() (T, error)) (T, error) {
	gap, told := 50*time.Millisecond, false
	for end := time.Now().Add(patience); ; {
		// A refusal is an answer. A missing or partial answer is not: the change may or may not have been made, and its
		// key makes a repetition safe.
		v, err := ask()
		kind := corral.KindOf(err)
		if !slices.Contains([]corral.Kind{corral.Unavailable, corral.Unknown}, kind) || time.Now().After(end) {
			return v, err
		}
		if gap >= tellAfter && !told {
			fmt.Fprintf(c.Err, "%s: corrald does not answer; waiting for it (%v)\n", c.name, err)
			told = true
		}
		retry.For(c.ctx, gap)
		gap = min(2*gap, 2*time.Second)
	}
}
