package cli

// run reads the workflow in the client, so that errors in a file are reported with the file's name, and sends the
// document to corrald. From then on the run belongs to corrald; this command follows the run and returns its result as
// the exit code. If a signal or --timeout ends the command early, the run continues unless --cancel-on-interrupt is
// given.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// runVerbs are the verbs for runs, including run and submit, which create a run.
type runVerbs struct{ *printer }

func (v runVerbs) runCommand() *cli.Command {
	read := func(c *cli.Context) (api.NewRun, error) {
		if file := c.Args().First(); isFolder(file) {
			return api.NewRun{}, corral.ErrorAt(corral.Invalid, file,
				"it is a folder: name a workflow in it, or run all of them with `corral ensemble run`")
		}
		return v.newRun(c, c.Args().First())
	}
	return &cli.Command{
		Name: "run", Category: workflows,
		Flags: append(slices.Concat(goalFlags(), estimateFlags(), pilotFlags(), runFlags(), rescueFlags()),
			&cli.BoolFlag{Name: "changed", Usage: "run only outdated tasks since the latest run of this file: " +
				"those whose command, inputs (size, time) or parents have changed, or that were not done"},
			&cli.BoolFlag{Name: "auto", Usage: "plan pilots for it, request them, and release them at its end"},
			clusterFlag(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "do not follow it"},
			&cli.BoolFlag{Name: "cancel-on-interrupt", Usage: "Ctrl-C cancels the run"},
			clusteringFlag("; with --auto the planner chooses unless it is given"),
			&cli.StringFlag{Name: "inputs", Value: corral.LinkInputs,
				Usage: "`HOW` tasks get their inputs: link, or copy for tasks that change them in place"},
			retriesFlag(2, "; of a .dag that does not say: none"), progressFlag(""),
			labelFlag(), keyFlag(), timeoutFlag(),
		),
		Action: v.orDryRun(read, func(c *cli.Context) error {
			auto := &autoRun{runVerbs: v, c: c}
			create := createRun
			if c.Bool("auto") {
				create = auto.create
			}
			return creating(read, create,
				func(c *cli.Context, cl *api.Client, r corral.Run) error { return v.begin(c, cl, r, auto) })(c)
		}),
	}
}

// begin follows a new run to its end, unless --detach is given. With -q it prints the id first, so that a script
// receives the id in any case.
func (v runVerbs) begin(c *cli.Context, cl *api.Client, r corral.Run, auto *autoRun) error {
	if c.String("clustering") == string(clustering.Auto) && !c.Bool("auto") {
		v.say("clustering: %s", r.Options.Clustering)
	}
	if c.Bool("detach") {
		v.say("run %d continues by itself; follow it with `corral runs wait %d`", r.ID, r.ID)
		v.warnOfLack(r, v.quiet)
		return runTable.show(v.printer, r)
	}
	v.warnOfLack(r, !v.showsReasons(c))
	r, err := v.followNew(c, cl, r, auto.beside(cl, v.view(c)))
	missed := auto.compare(cl, r)
	return cmp.Or(v.showEnd(r, err), missed)
}

// showsReasons reports whether the progress of a run permanently shows why no task is running. A live display on a
// terminal does not, because it overwrites the reason.
func (v runVerbs) showsReasons(c *cli.Context) bool {
	switch c.String("progress") {
	case progressJSON, progressLines:
		return true
	case progressNone:
		return false
	}
	return !v.quiet && !lookOf(v.err).Live()
}

// warnOfLack prints what the cluster lacks for a new run, if this is not shown otherwise.
func (p *printer) warnOfLack(r corral.Run, unshown bool) {
	if unshown && r.Reason != "" {
		fmt.Fprintln(p.err, "corral: warning: "+readable(r.Reason))
	}
}

// followNew follows a new run to its end.
func (v runVerbs) followNew(c *cli.Context, cl *api.Client, r corral.Run, view progress.View) (corral.Run, error) {
	if v.quiet {
		fmt.Fprintln(v.out, r.ID) // a script receives the id in any case
	}
	return v.followOn(c, cl, r, runFollow{view, c.Duration("timeout")})
}

// showEnd prints a run that was followed to its end, unless only the run's id was requested.
func (v runVerbs) showEnd(r corral.Run, err error) error {
	if err != nil || v.quiet {
		return err
	}
	return v.show(r)
}

// newRun reads the workflow, prints its warnings, and creates the request. All errors in the file are found here,
// before corrald is contacted. The paths in the request are absolute, because corrald works in another directory.
func (v runVerbs) newRun(c *cli.Context, file string) (api.NewRun, error) {
	n, err := newRunOptions(c)
	if err != nil {
		return n, err
	}
	n.WorkflowName, n.Changed = file, c.Bool("changed")
	n.Options.Inputs = c.String("inputs")
	if word, _ := formats.Of(file); word == "dagman" && !c.IsSet("retries") {
		n.Options.Retries = 0 // as in DAGMan, only RETRY in the file makes a node run again
	}
	if n.Changed && c.Bool("auto") {
		return n, corral.ErrorAt(corral.Invalid, "--changed",
			"cannot be used with --auto: plans are for the whole workflow")
	}
	for _, flag := range slices.Concat(goalFlags(), estimateFlags(), pilotFlags()) {
		if name := flag.Names()[0]; c.IsSet(name) && !c.Bool("auto") {
			return n, corral.ErrorAt(corral.Invalid, "--"+name, "requires --auto")
		}
	}
	w, err := v.readWorkflow(c.Context, file, false)
	if err != nil {
		return n, err
	}
	if err := v.applyRescue(c, &n, w); err != nil {
		return n, err
	}
	if err := cmp.Or(w.Runnable(), w.Schedulable()); err != nil {
		return n, err
	}
	return n, attachWorkflow(c, &n, w)
}

// newRunOptions creates the request for a run, without the workflow.
func newRunOptions(c *cli.Context) (n api.NewRun, err error) {
	n = api.NewRun{
		Cluster: c.String("cluster"), Labels: labelsOf(c, "label"),
		Options: corral.RunOptions{
			Retries: c.Int("retries"), Stall: corral.Seconds(c.Duration("stall")),
			RetryUnless: c.String("retry-unless"), CrashLimit: cmp.Or(c.Int("crash-limit"), -1),
			DefaultRuntime: corral.Seconds(c.Duration("default-runtime")), KeepTasks: c.Bool("keep-tasks"),
			Clustering: c.String("clustering"), Stream: c.Bool("stream"), Priority: c.Int("priority"),
			Trace: c.String("trace"),
		},
	}
	if limit := c.Int("crash-limit"); limit < 0 { // 0 in the flag is -1 in the request
		return n, corral.ErrorAt(corral.Invalid, "--crash-limit", "%d is not a number of workers, 0 or more", limit)
	}
	for flag, d := range map[string]corral.Seconds{"--stall": n.Options.Stall,
		"--default-runtime": n.Options.DefaultRuntime} {
		if d <= 0 {
			return n, corral.ErrorAt(corral.Invalid, flag, "%s is not a positive duration", d)
		}
	}
	if dir := c.String("dir"); dir != "" {
		n.Dir, err = filepath.Abs(dir)
	}
	return n, err
}

// attachWorkflow adds a workflow to a request, as WfFormat whatever its original format. A corrald that is reached over
// https is on another machine, where the source folder of this machine does not exist or is a different folder.
func attachWorkflow(c *cli.Context, n *api.NewRun, w *workflow.Workflow) error {
	var document bytes.Buffer
	err := wfformat.Write(&document, w)
	n.Workflow = document.Bytes()
	if !strings.HasPrefix(c.String("server"), "https:") {
		n.SourceDir = w.Dir
	}
	return err
}

// follow shows the run's progress until it is over, for at most d (0: without limit). A run that did not succeed is an
// error, which is printed after its report. An interrupt, the end of d, and a corrald that no longer answers also end
// the command; only an interrupt may affect the run.
func (v runVerbs) follow(c *cli.Context, cl *api.Client, r corral.Run, d time.Duration) (corral.Run, error) {
	return v.followOn(c, cl, r, runFollow{v.view(c), d})
}

// view returns the view that --progress selects: by default the best view for the output, and an empty view with
// --quiet.
func (v runVerbs) view(c *cli.Context) progress.View {
	switch form := c.String("progress"); {
	case form == progressJSON:
		return progress.NewJSON(v.err)
	case form == progressLines:
		return progress.New(v.err, progress.Look{})
	case form == progressNone, v.quiet && !c.IsSet("progress"):
		return progress.New(io.Discard, progress.Look{})
	}
	return progress.New(v.err, lookOf(v.err))
}

// A runFollow specifies the view that shows a run's progress, and how long to follow the run; 0: to its end.
type runFollow struct {
	view progress.View
	d    time.Duration
}

// followOn is like follow, but with a given view.
func (v runVerbs) followOn(c *cli.Context, cl *api.Client, r corral.Run, on runFollow) (corral.Run, error) {
	ctx := c.Context
	if on.d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, on.d)
		defer cancel()
	}
	r, err := progress.Run(ctx, cl, r, on.view)
	switch {
	case err != nil && c.Context.Err() != nil:
		return r, v.interrupt(c, cl, r)
	case errors.Is(err, context.DeadlineExceeded):
		why := progress.Reason(r, time.Now())
		if why != "" {
			why = " (" + why + ")"
		}
		err = corral.Errorf(corral.Timeout, "run %d is still %s after %s%s; it continues", r.ID, r.State,
			c.Duration("timeout"), why)
	case corral.KindOf(err) == corral.Unavailable || corral.KindOf(err) == corral.Unknown:
		err = fmt.Errorf("run %d continues as soon as corrald does; `corral runs wait %d` follows it: %w", r.ID, r.ID,
			err)
	case err == nil:
		if err = runError(r); err != nil && v.forPeople() {
			told := r
			told.Reason = "" // the error contains the reason
			_ = v.show(told) // the stream stores errors of stdout
			v.showTail(c, cl, r)
		}
	}
	if err != nil {
		return r, objectError{fmt.Sprintf("/v1/runs/%d", r.ID), err}
	}
	return r, nil
}

// interrupt handles an interrupt while a run is followed, and returns the reason why the command ends.
func (v runVerbs) interrupt(c *cli.Context, cl *api.Client, r corral.Run) error {
	if lookOf(v.err).Live() && !v.quiet {
		fmt.Fprint(v.err, "\r\x1b[K") // erases the terminal's echo of ^C
	}
	if !c.Bool("cancel-on-interrupt") {
		v.say("run %d continues by itself; follow it with `corral runs wait %d`, end it with `corral runs cancel %d`",
			r.ID, r.ID, r.ID)
		return c.Context.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), time.Minute)
	defer cancel()
	_, err := cl.CancelRun(ctx, r.ID)
	if err == nil {
		_, err = cl.WaitRun(ctx, r.ID, 0)
	}
	if err != nil {
		v.say("run %d was not cancelled: %v", r.ID, err)
		return err
	}
	v.say("run %d is cancelled", r.ID)
	return c.Context.Err()
}

// runError returns the error for a run that did not succeed; its kind determines the exit code.
func runError(r corral.Run) error {
	switch r.State {
	case corral.RunSucceeded:
		return nil
	case corral.RunStalled:
		return corral.Errorf(corral.Unsatisfiable, "run %d stalled: %s", r.ID, r.Reason)
	}
	reason := cmp.Or(r.Reason, "no reason was recorded")
	return corral.Errorf(corral.Failed, "run %d is %s: %s", r.ID, r.State, reason)
}
