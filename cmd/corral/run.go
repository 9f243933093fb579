package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/follow"
	"github.com/corral-pilot/corral/workflow"
)

func runCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run a workflow on a cluster and follow it", ArgsUsage: "WORKFLOW",
		Description: "Example: corral run examples/lambda/workflow.json --clustering horizontal=4\n" +
			"corrald owns the run: Ctrl-C only stops following it. Exit code 0 only if every task succeeded,\n" +
			"3 if no worker could ever take what was ready.",
		Flags: []cli.Flag{
			clusterFlag,
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "do not follow it"},
			&cli.BoolFlag{Name: "cancel-on-interrupt", Usage: "Ctrl-C cancels the run"},
			&cli.StringFlag{Name: "clustering", Value: "none", Usage: "none, or horizontal=N: the tasks of each level in at most N jobs"},
			&cli.IntFlag{Name: "retries", Value: 2, Usage: "of a task that fails, unless the task says otherwise"},
			&cli.DurationFlag{Name: "stall", Value: 5 * time.Minute, Usage: "end with 3 when nothing could take what is ready for `D`"},
			&cli.DurationFlag{Name: "default-runtime", Value: time.Minute, Usage: "assumed of a task without an estimate"},
			&cli.StringFlag{Name: "dir", Usage: "run directory on corrald's host; must not exist or be empty (default: below the XDG data directory)"},
			labelFlag, keyFlag, timeoutFlag,
		},
		Action: func(c *cli.Context) error { return runWorkflow(c, p) },
	}
}

func runWorkflow(c *cli.Context, p *printer) error {
	file, err := argument(c, "workflow")
	if err != nil {
		return err
	}
	request, err := newRun(c, p, file)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	r, err := cl.CreateRun(c.Context, request, c.String("key"))
	if err != nil {
		return err
	}
	if c.Bool("detach") {
		p.say("run %d goes on by itself; follow it with `corral runs wait %d`", r.ID, r.ID)
		return show(p, r, runID, runColumns)
	}
	return followRun(c, p, cl, r)
}

// newRun reads the workflow, says what is odd about it, and makes the request.
func newRun(c *cli.Context, p *printer, file string) (api.NewRun, error) {
	n := api.NewRun{
		Cluster: c.String("cluster"), WorkflowName: file, Dir: c.String("dir"),
		Options: corral.RunOptions{
			Clustering: c.String("clustering"), Retries: c.Int("retries"),
			Stall: corral.Seconds(c.Duration("stall")), DefaultRuntime: corral.Seconds(c.Duration("default-runtime")),
		},
	}
	var err error
	if n.Labels, err = parseLabels(c, "label"); err != nil {
		return n, err
	}
	w, err := readWorkflow(p, file, false)
	if err != nil {
		return n, err
	}
	if err := w.Runnable(); err != nil {
		return n, err
	}
	var document bytes.Buffer // whatever format it was read from, corrald gets WfFormat
	if err := workflow.Write(&document, w); err != nil {
		return n, err
	}
	n.Workflow, n.SourceDir = document.Bytes(), w.Dir
	if n.Dir != "" {
		n.Dir, err = filepath.Abs(n.Dir)
	}
	return n, err
}

// followRun shows the run's progress until it is over and reports on it.
func followRun(c *cli.Context, p *printer, cl *api.Client, r corral.Run) error {
	ctx := c.Context
	if d := c.Duration("timeout"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	view := follow.New(p.err, isTerminal(p.err) && !p.quiet, p.quiet)
	r, err := follow.Run(ctx, cl, r, view)
	switch {
	case err != nil && c.Context.Err() != nil:
		return interruptRun(c, p, cl, r)
	case errors.Is(err, context.DeadlineExceeded):
		return corral.Errorf(corral.Timeout, "run %d is still %s after %s; it goes on", r.ID, r.State, c.Duration("timeout"))
	case err != nil:
		return err
	}
	if err := showRun(p, r); err != nil {
		return err
	}
	return runError(r)
}

// interruptRun is what Ctrl-C does to the run that is followed.
func interruptRun(c *cli.Context, p *printer, cl *api.Client, r corral.Run) error {
	if !c.Bool("cancel-on-interrupt") {
		p.say("run %d goes on by itself; follow it with `corral runs wait %d`, end it with `corral runs cancel %d`", r.ID, r.ID, r.ID)
		return interrupted
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := cl.CancelRun(ctx, r.ID); err != nil {
		return err
	}
	if _, err := cl.WaitRun(ctx, r.ID, 0); err != nil {
		return err
	}
	p.say("run %d is cancelled", r.ID)
	return interrupted
}

// runError turns a run that did not succeed into the error whose exit code tells so.
func runError(r corral.Run) error {
	switch r.State {
	case corral.RunSucceeded:
		return nil
	case corral.RunStalled:
		return corral.Errorf(corral.Unsatisfiable, "run %d stalled: %s", r.ID, r.Reason)
	}
	reason := r.Reason
	if reason == "" {
		reason = "no reason was recorded"
	}
	return corral.Errorf(corral.Failed, "run %d is %s: %s", r.ID, r.State, reason)
}

// readWorkflow reads a workflow file and prints its warnings.
func readWorkflow(p *printer, file string, strict bool) (*workflow.Workflow, error) {
	w, warnings, err := workflow.ReadFile(file, workflow.Options{Strict: strict})
	for _, warning := range warnings {
		p.say("corral: warning: %s", warning)
	}
	return w, err
}

func runID(r corral.Run) string { return strconv.FormatInt(int64(r.ID), 10) }
