package cli

// If a run of a .dag does not succeed, corrald writes a rescue file beside the .dag, and the next run of the same .dag
// continues from the newest rescue file, as with condor_submit_dag. The rescue file, like the workflow, is read by the
// client.

import (
	"context"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

func rescueFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "rescue", Usage: "for a .dag: continue from its rescue file `N` (default: the newest)"},
		&cli.BoolFlag{Name: "no-rescue", Usage: "for a .dag: start again, ignoring rescue files"},
	}
}

// applyRescue marks the nodes that a rescue file of a .dag lists as done, and requests the next rescue file.
func (v runVerbs) applyRescue(c *cli.Context, n *api.NewRun, w *workflow.Workflow) error {
	file := n.WorkflowName
	if word, _ := formats.Of(file); word != "dagman" {
		if c.IsSet("rescue") || c.IsSet("no-rescue") {
			return corral.ErrorAt(corral.Invalid, "--rescue",
				"%s is not a .dag: other files have no rescue files", file)
		}
		return nil
	}
	var err error
	if n.Rescue, err = filepath.Abs(file); err != nil {
		return err
	}
	number, err := rescueNumber(c, file)
	if err != nil || number == 0 {
		return err
	}
	name := dagman.RescueName(file, number)
	if c.Bool("auto") || c.Bool("changed") {
		return corral.ErrorAt(corral.Invalid, "--no-rescue",
			"missing: %s lists completed nodes; --auto and --changed are for the whole workflow", name)
	}
	r, err := readRescue(c.Context, name)
	if err != nil {
		return err
	}
	for _, unknown := range r.Mark(w) {
		v.say("corral: warning: %s: DONE: %s is not a node that can be done; it is ignored", name,
			workflow.Printable(unknown))
	}
	n.DoneDir = r.Data
	v.say("%s: %d node(s) are done; --no-rescue starts again", name, len(r.Done))
	return nil
}

// rescueNumber returns the number of the rescue file from which to continue, or 0 for none.
func rescueNumber(c *cli.Context, dag string) (last int, err error) {
	switch n := c.Int("rescue"); {
	case c.Bool("no-rescue") && c.IsSet("rescue"):
		return 0, corral.ErrorAt(corral.Invalid, "--rescue", "cannot be used with --no-rescue")
	case c.Bool("no-rescue"):
		return 0, nil
	case c.IsSet("rescue") && (n < 1 || n > dagman.MaxRescue):
		return 0, corral.ErrorAt(corral.Invalid, "--rescue", "%d is not between 1 and %d", n, dagman.MaxRescue)
	case c.IsSet("rescue"):
		return n, nil
	}
	entries, err := os.ReadDir(filepath.Dir(dag))
	for _, e := range entries {
		last = max(last, dagman.RescueNumber(filepath.Base(dag), e.Name()))
	}
	return last, err
}

// readRescue reads a rescue file.
func readRescue(ctx context.Context, name string) (dagman.Rescue, error) {
	f, err := input.Open(name)
	if err != nil {
		return dagman.Rescue{}, corral.ErrorAt(corral.Invalid, name, "%w", pathCause(err))
	}
	defer f.Close()
	return dagman.ReadRescue(input.Limit(ctx, f, workflow.DefaultMaxBytes), name)
}
