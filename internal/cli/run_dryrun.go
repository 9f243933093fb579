package cli

// A dry run sends the request for a run to corrald and prints what the run would do: which tasks would run, which tasks
// are done and would be skipped, and whether each task fits a present or requested worker of the cluster.

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/workflow"
)

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only print what would run, what would be skipped, and whether each " +
		"task fits a worker; exit code 3 if one does not"}
}

// orDryRun returns an action that creates a run by calling otherwise or, with --dry-run, prints what the run would do.
// In that case -q prints the ids of the tasks that would run.
func (v runVerbs) orDryRun(read func(*cli.Context) (api.NewRun, error), otherwise cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if !c.Bool("dry-run") {
			return otherwise(c)
		}
		for _, flag := range []string{"auto", "wait", "progress", "detach", "key"} {
			if c.IsSet(flag) {
				return corral.ErrorAt(corral.Invalid, "--dry-run", "cannot be used with --%s", flag)
			}
		}
		n, err := read(c)
		if err != nil {
			return err
		}
		cl, err := connect(c)
		if err != nil {
			return err
		}
		d, err := cl.DryRun(c.Context, n)
		if err != nil {
			return err
		}
		return v.showDryRun(d)
	}
}

// showDryRun prints a dry run. It returns an error if a task fits no worker.
func (v runVerbs) showDryRun(d api.DryRun) error {
	switch {
	case v.quiet:
		for _, t := range d.Tasks {
			if t.Run {
				fmt.Fprintln(v.out, t.ID)
			}
		}
	case v.format != formTable:
		if err := v.encode(d); err != nil {
			return err
		}
	default:
		if err := dryRunTable.list(v.printer, d.Tasks); err != nil {
			return err
		}
		clustered := ""
		if d.Jobs < d.Run {
			clustered = fmt.Sprintf(" in %d job(s)", d.Jobs)
		}
		v.say("%s on cluster %s, which has %d cpu(s) now: %d of %d task(s) would run%s, %d would be skipped",
			workflow.Printable(d.Workflow), d.Cluster, d.CPUs, d.Run, len(d.Tasks), clustered, d.Skip)
	}
	return unfitError(d)
}

// unfitError returns the error about tasks that fit no worker: it names the first such task, and the number of others.
func unfitError(d api.DryRun) error {
	var first *api.DryRunTask
	more := -1
	for i := range d.Tasks {
		if t := &d.Tasks[i]; t.Lack != "" {
			if more++; first == nil {
				first = t
			}
		}
	}
	if first == nil {
		return nil
	}
	return printedError{corral.Errorf(corral.Unsatisfiable, "task %s %s%s", workflow.Printable(first.ID), first.Lack,
		workflow.AndMore(more))}
}

var dryRunTable = listing[api.DryRunTask]{
	id: func(t api.DryRunTask) string { return t.ID },
	columns: []column[api.DryRunTask]{
		{"task", func(t api.DryRunTask) any { return workflow.Printable(t.ID) }},
		{"transformation", func(t api.DryRunTask) any { return workflow.Printable(t.Name) }},
		{"would", func(t api.DryRunTask) any { return choose(t.Run, "run", "be skipped") }},
		{"job", func(t api.DryRunTask) any { return unless(t.Job) }},
		{"because", func(t api.DryRunTask) any { return t.Reason }},
		{"fits", func(t api.DryRunTask) any {
			switch {
			case !t.Run:
				return ""
			case t.Lack == "":
				return "yes"
			}
			return "no: " + t.Lack
		}},
	},
}
