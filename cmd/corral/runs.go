package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func runsCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "runs", Category: workflows, Usage: "runs of workflows",
		Description: explained("A run is one execution of a workflow on a cluster. corrald drives it; it goes on without you.", "corral runs list"),
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list runs", Description: explained("", "corral runs list -l project=lambda"),
				Flags:  []cli.Flag{allFlag(), filterFlag(), clusterFlag()},
				Action: func(c *cli.Context) error { return listRuns(c, p) },
			},
			runsVerb("show", "show a run and its report", nil, func(c *cli.Context, cl *api.Client, id corral.RunID) error {
				r, err := cl.Run(c.Context, id)
				if err != nil {
					return err
				}
				return showRun(p, r)
			}),
			{
				Name: "wait", Usage: "follow runs until they are over", ArgsUsage: "RUN…",
				Description: explained("Exit codes as of corral run: 0 only if every task of every run succeeded.", "corral runs wait 3\ncorral runs wait -l project=lambda --timeout 1h"),
				Flags:       []cli.Flag{filterFlag(), timeoutFlag()},
				Action:      func(c *cli.Context) error { return waitRuns(c, p) },
			},
			runsVerb("cancel", "kill a run's tasks; finished ones stay finished", []cli.Flag{waitFlag("no task runs any more"), timeoutFlag()},
				func(c *cli.Context, cl *api.Client, id corral.RunID) error { return cancelRun(c, p, cl, id) }),
			runsVerb("resume", "let a run that failed, stalled or was cancelled go on", nil, func(c *cli.Context, cl *api.Client, id corral.RunID) error {
				r, err := cl.ResumeRun(c.Context, id)
				if err != nil {
					return err
				}
				return show(p, r, runTable)
			}),
			runsVerb("tasks", "list a run's tasks", []cli.Flag{&cli.StringSliceFlag{Name: "state", Usage: "only those in `STATE`: waiting, ready, running, done, failed or skipped; may be repeated"}},
				func(c *cli.Context, cl *api.Client, id corral.RunID) error { return listTasks(c, p, cl, id) }),
			{
				Name: "log", Usage: "what happened to a run, or what one of its tasks wrote", ArgsUsage: "RUN [TASK]",
				Description: explained("", "corral runs log 3 count.07 --file stdout"),
				Flags:       []cli.Flag{&cli.StringFlag{Name: "file", Value: "stderr", Usage: "`FILE` of the task's last attempt: stdout, stderr or record.json"}},
				Action:      func(c *cli.Context) error { return runLog(c, p) },
			},
			{
				Name: "remove", Usage: "hide the records of runs that are over", ArgsUsage: "RUN…",
				Description: explained("", "corral runs remove 3 --purge"),
				Flags:       []cli.Flag{&cli.BoolFlag{Name: "purge", Usage: "delete their directories, results too"}, filterFlag()},
				Action:      func(c *cli.Context) error { return removeRuns(c, p) },
			},
		},
	}
}

// runsVerb is a command that takes one run.
func runsVerb(name, usage string, flags []cli.Flag, do func(*cli.Context, *api.Client, corral.RunID) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "RUN", Flags: flags,
		Description: explained("", "corral runs "+name+" 3"),
		Action: func(c *cli.Context) error {
			arg, err := argument(c, "run id")
			if err != nil {
				return err
			}
			id, err := parseID[corral.RunID]("run", arg)
			if err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			return do(c, cl, id)
		},
	}
}

func listRuns(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	f := api.Filter{All: c.Bool("all"), Cluster: c.String("cluster")}
	var err error
	if f.Labels, err = parseLabels("-l", c.StringSlice("l")); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	runs, err := cl.Runs(c.Context, f)
	if err != nil {
		return err
	}
	return list(p, runs, runTable)
}

// runsOf returns the runs that were chosen; by labels it may be none.
func runsOf(c *cli.Context, cl *api.Client, which choice[corral.RunID]) (runs []corral.Run, err error) {
	if len(which.labels) > 0 {
		return cl.Runs(c.Context, api.Filter{Labels: which.labels})
	}
	for _, id := range which.ids {
		r, err := cl.Run(c.Context, id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// waitRuns follows one run after the other to its end and then tells of the first that did not succeed.
func waitRuns(c *cli.Context, p *printer) error {
	which, err := chosen[corral.RunID](c, "run")
	if err != nil {
		return err
	}
	d, err := timeout(c, true)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	runs, err := runsOf(c, cl, which)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return corral.Errorf(corral.NotFound, "no run has the label %s", labels(which.labels))
	}
	left := countDown(d)
	var worst error
	for i, r := range runs {
		runs[i], err = followRun(c, p, cl, r, left())
		if err != nil && !runs[i].State.Over() {
			return err
		}
		if worst == nil {
			worst = err
		}
	}
	switch alone := len(which.labels) == 0 && len(runs) == 1; {
	case worst != nil:
		return worst
	case alone:
		return showRun(p, runs[0])
	}
	return list(p, runs, runTable)
}

func removeRuns(c *cli.Context, p *printer) error {
	which, err := chosen[corral.RunID](c, "run")
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	runs, err := runsOf(c, cl, which)
	if err != nil {
		return err
	}
	for i, r := range runs {
		if runs[i], err = cl.RemoveRun(c.Context, r.ID, c.Bool("purge")); err != nil {
			return err
		}
	}
	return showEach(p, runs, len(which.labels) == 0, runTable)
}

func cancelRun(c *cli.Context, p *printer, cl *api.Client, id corral.RunID) error {
	d, err := timeout(c, c.Bool("wait"))
	if err != nil {
		return err
	}
	r, err := cl.CancelRun(c.Context, id)
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		if r, err = cl.WaitRun(c.Context, id, d); err != nil {
			return about{fmt.Sprintf("/v1/runs/%d", id), err}
		}
	}
	return show(p, r, runTable)
}

func listTasks(c *cli.Context, p *printer, cl *api.Client, id corral.RunID) error {
	var states []corral.TaskState
	for _, s := range c.StringSlice("state") {
		states = append(states, corral.TaskState(s))
	}
	tasks, err := cl.RunTasks(c.Context, id, states...)
	if err != nil {
		return err
	}
	return list(p, tasks, taskTable)
}

func runLog(c *cli.Context, p *printer) error {
	if c.NArg() != 1 && c.NArg() != 2 {
		return corral.Errorf(corral.Invalid, "want RUN [TASK], got %d arguments; see `%s --help`", c.NArg(), c.Command.HelpName)
	}
	id, err := parseID[corral.RunID]("run", c.Args().First())
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	if c.NArg() == 1 {
		entries, err := cl.RunHistory(c.Context, id)
		if err != nil {
			return err
		}
		return list(p, entries, entryTable)
	}
	b, err := cl.RunTaskLog(c.Context, id, c.Args().Get(1), c.String("file"))
	if err == nil {
		_, err = p.out.Write(b)
	}
	return err
}

// showRun prints a run, and its report once it is over.
func showRun(p *printer, r corral.Run) error {
	if err := show(p, r, runTable); err != nil || !p.forPeople() || r.Report == nil {
		return err
	}
	fmt.Fprintln(p.out)
	printReport(p, *r.Report, r.State == corral.RunSucceeded)
	return nil
}

// printReport draws what a run took, and if it is whole, beside what it could have taken.
func printReport(p *printer, r corral.RunReport, whole bool) {
	d := func(s corral.Seconds) string { return span(time.Duration(s)) }
	t := newTable(nil)
	t.AppendRows([]table.Row{
		{"makespan", d(r.Makespan), fmt.Sprintf("of it %s until the first task began", d(r.WaitForWorkers))},
		{"task time", d(r.TaskTime), fmt.Sprintf("parallelism %.2f on %d cpu(s)", r.Parallelism, r.CPUs)},
	})
	if whole {
		t.AppendRows([]table.Row{
			{"lower bound", d(r.LowerBound), fmt.Sprintf("makespan is %.2f × max(critical path %s, work ÷ cpus)", r.OverBound, d(r.CriticalPath))},
			{"list schedule", d(r.ListSchedule), fmt.Sprintf("makespan is %.2f × highest rank first, no overhead", r.OverList)},
		})
	}
	if r.LostWork > 0 || r.Requeued > 0 || r.RetriesUsed > 0 {
		t.AppendRow(table.Row{"lost work", d(r.LostWork), fmt.Sprintf("%d requeued, %d retries used", r.Requeued, r.RetriesUsed)})
	}
	p.render(t)
}

var runTable = listing[corral.Run]{
	id:   func(r corral.Run) string { return strconv.FormatInt(int64(r.ID), 10) },
	none: "no runs; begin one with `corral run WORKFLOW`",
	columns: []column[corral.Run]{
		{"id", func(r corral.Run) any { return r.ID }},
		{"workflow", func(r corral.Run) any { return r.Workflow }},
		{"cluster", func(r corral.Run) any { return r.ClusterName }},
		{"state", func(r corral.Run) any { return r.State }},
		{"done", func(r corral.Run) any { return fmt.Sprintf("%d of %d", r.Tasks.Done, r.Tasks.Total) }},
		{"failed", func(r corral.Run) any { return unless(r.Tasks.Failed) }},
		{"created", func(r corral.Run) any { return when(r.CreatedAt) }},
		{"labels", func(r corral.Run) any { return labels(r.Labels) }},
		{"reason", func(r corral.Run) any { return r.Reason }},
	},
	details: []column[corral.Run]{
		{"ended", func(r corral.Run) any { return when(r.EndedAt) }},
		{"results", func(r corral.Run) any { return filepath.Join(r.Dir, "data") }},
	},
}

var taskTable = listing[api.Task]{
	id:   func(t api.Task) string { return t.ID },
	none: "no tasks in that state",
	columns: []column[api.Task]{
		{"task", func(t api.Task) any { return t.ID }},
		{"state", func(t api.Task) any { return t.State }},
		{"attempts", func(t api.Task) any { return t.Attempts }},
		{"worker", func(t api.Task) any { return t.Worker }},
		{"exit", func(t api.Task) any { return exitStatus(t.ExitStatus) }},
		{"took", func(t api.Task) any { return took(t) }},
		{"reason", func(t api.Task) any { return t.Reason }},
	},
}

func exitStatus(status *int) string {
	if status == nil {
		return ""
	}
	return fmt.Sprint(*status)
}

func took(t api.Task) string {
	if t.EndedAt.IsZero() || t.StartedAt.IsZero() {
		return ""
	}
	return span(t.EndedAt.Sub(t.StartedAt))
}
