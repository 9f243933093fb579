// Package slurm has the commands of the Slurm shim: sbatch and its like, by which programs that were made for Slurm run
// their jobs on a personal cluster.
//
// All jobs of a Folder are tasks of one open run. A command finds its folder by the name it is called by, reads what it
// is asked (packages submission and job know Slurm's words), and asks corrald once or twice. It keeps nothing itself.
// What a job needs beyond a task travels with it: package step, which is sbatch's other half, runs it on a worker.
//
// Its one invariant: what Slurm would do and a personal cluster cannot is refused by name, before anything is changed.
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

// Stdio is where a command reads and writes.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// A call is one command line that is being carried out. It begins with what the shell has given; open sets its folder
// and its client, once the line is known to be right: mistakes in it are told without asking corrald.
type call struct {
	Stdio
	ctx    context.Context // which does not end: an interrupt ends the process
	name   string          // of the command, without its folder
	args   []string
	at     string // as it was called: the folder is found by it
	folder Folder
	client *api.Client
	over   bool   // the folder's run is: what it has not begun never will be
	title  string // the cluster, where it was named: its name stands above lists
}

// Names are the commands that stand in a folder.
func Names() []string { return slices.Sorted(maps.Keys(commands)) }

// commands are what the program can be called by.
var commands = map[string]func(*call) error{
	"sbatch": sbatch, "scancel": scancel, "squeue": squeue, "sacct": sacct, "sinfo": sinfo, "srun": srun,
	"sacctmgr": sacctmgr, "scontrol": scontrol,
}

// An exit ends a command with a status, and says nothing more.
type exit int

func (e exit) Error() string { return fmt.Sprint("exit status ", int(e)) }

// Main does what the first word of a command line says, and returns the exit status.
func Main(words []string, std Stdio) int {
	c := &call{Stdio: std, ctx: context.Background(), at: words[0], name: filepath.Base(words[0]), args: words[1:]}
	command, ok := commands[c.name]
	if !ok {
		fmt.Fprintf(std.Err, "%s: call it by one of the names %s, as in a folder of `corral shim slurm`\n",
			c.name, strings.Join(Names(), ", "))
		return 1
	}
	// A command that has said all that there is to say, or passes on how a job ended, returns an exit. Everything else
	// is an error, in Slurm's words if Slurm has them, and always exit status 1: clients look at no other.
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

// open finds the folder of a call, makes a client for its corrald, and asks that for the folder's run.
func (c *call) open() (err error) {
	if c.folder, err = Found(c.at, os.Getenv); err != nil {
		return err
	}
	if c.folder.Run == 0 {
		return corral.ErrorAt(corral.NotFound, c.folder.Path,
			"the shim was not finished: run `corral shim slurm %s` again", c.folder.Path)
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

// patience is how long a command goes on to ask a corrald that does not answer: it may have been killed, and be started
// again.
const patience = 5 * time.Minute

// tellAfter is the pause after which a command says that it waits for corrald.
const tellAfter = time.Second

// untilAnswered asks corrald until it answers. What changes something has a key, so that it happens once.
func untilAnswered[T any](c *call, ask func() (T, error)) (T, error) {
	gap, told := 50*time.Millisecond, false
	for end := time.Now().Add(patience); ; {
		// A refusal is an answer. Neither no answer nor half of one is: a change may or may not have been made then,
		// and its key makes it safe to ask again.
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
