package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func runsCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name:  "runs",
		Usage: "runs of workflows",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list runs", Description: "Example: corral runs list -l project=lambda",
				Flags:  []cli.Flag{allFlag, filterFlag, clusterFlag},
				Action: func(c *cli.Context) error { return listRuns(c, p) },
			},
			runsVerb("show", "show a run and its report", nil, func(c *cli.Context, cl *api.Client, id corral.RunID) error {
				r, err := cl.Run(c.Context, id)
				if err != nil {
					return err
				}
				return showRun(p, r)
			}),
			runsVerb("wait", "follow a run until it is over", []cli.Flag{timeoutFlag}, func(c *cli.Context, cl *api.Client, id corral.RunID) error {
				r, err := cl.Run(c.Context, id)
				if err != nil {
					return err
				}
				return followRun(c, p, cl, r)
			}),
			runsVerb("cancel", "kill a run's tasks; finished ones stay finished", []cli.Flag{&cli.BoolFlag{Name: "wait", Usage: "return when no task runs any more"}, timeoutFlag},
				func(c *cli.Context, cl *api.Client, id corral.RunID) error { return cancelRun(c, p, cl, id) }),
			runsVerb("resume", "let a run that failed, stalled or was cancelled go on", nil, func(c *cli.Context, cl *api.Client, id corral.RunID) error {
				r, err := cl.ResumeRun(c.Context, id)
				if err != nil {
					return err
				}
				return show(p, r, runID, runColumns)
			}),
			runsVerb("tasks", "list a run's tasks", []cli.Flag{&cli.StringSliceFlag{Name: "state", Usage: "only in `STATE`, may be repeated"}},
				func(c *cli.Context, cl *api.Client, id corral.RunID) error { return listTasks(c, p, cl, id) }),
			{
				Name: "log", Usage: "what happened to a run, or what one of its tasks wrote", ArgsUsage: "RUN [TASK]",
				Description: "Example: corral runs log 3 count_07 --file stdout",
				Flags:       []cli.Flag{&cli.StringFlag{Name: "file", Value: "stderr", Usage: "stdout, stderr or record.json of the task's last attempt"}},
				Action:      func(c *cli.Context) error { return runLog(c, p) },
			},
			runsVerb("remove", "hide the record of a run that is over", []cli.Flag{&cli.BoolFlag{Name: "purge", Usage: "delete its directory, results too"}},
				func(c *cli.Context, cl *api.Client, id corral.RunID) error {
					r, err := cl.RemoveRun(c.Context, id, c.Bool("purge"))
					if err != nil {
						return err
					}
					return show(p, r, runID, runColumns)
				}),
		},
	}
}

func runsVerb(name, usage string, flags []cli.Flag, do func(*cli.Context, *api.Client, corral.RunID) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "RUN", Flags: flags,
		Description: "Example: corral runs " + name + " 3",
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
	if f.Labels, err = parseLabels(c, "l"); err != nil {
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
	return list(p, runs, runID, runColumns)
}

func cancelRun(c *cli.Context, p *printer, cl *api.Client, id corral.RunID) error {
	r, err := cl.CancelRun(c.Context, id)
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		if r, err = cl.WaitRun(c.Context, id, c.Duration("timeout")); err != nil {
			return err
		}
	}
	return show(p, r, runID, runColumns)
}

func listTasks(c *cli.Context, p *printer, cl *api.Client, id corral.RunID) error {
	var states []api.TaskState
	for _, s := range c.StringSlice("state") {
		states = append(states, api.TaskState(s))
	}
	tasks, err := cl.RunTasks(c.Context, id, states...)
	if err != nil {
		return err
	}
	return list(p, tasks, func(t api.Task) string { return t.ID }, taskColumns)
}

func runLog(c *cli.Context, p *printer) error {
	if c.NArg() != 1 && c.NArg() != 2 {
		return corral.Errorf(corral.Invalid, "want RUN [TASK], got %d arguments", c.NArg())
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
		return list(p, entries, entryID, entryColumns)
	}
	b, err := cl.RunTaskLog(c.Context, id, c.Args().Get(1), c.String("file"))
	if err == nil {
		_, err = p.out.Write(b)
	}
	return err
}

// showRun prints a run, and its report once it is over.
func showRun(p *printer, r corral.Run) error {
	if err := show(p, r, runID, runColumns); err != nil || p.quiet || p.format != "table" || r.Report == nil {
		return err
	}
	fmt.Fprintln(p.out)
	printReport(p, *r.Report)
	return nil
}

// printReport draws what the run took beside what it could have taken.
func printReport(p *printer, r corral.RunReport) {
	d := func(s corral.Seconds) string { return span(time.Duration(s)) }
	t := newTable(p, nil)
	t.AppendRows([]table.Row{
		{"makespan", d(r.Makespan), fmt.Sprintf("of it waiting for the first worker %s", d(r.WaitForWorkers))},
		{"cumulative task time", d(r.TaskTime), fmt.Sprintf("parallelism %.2f on %d cpu(s)", r.Parallelism, r.CPUs)},
		{"lower bound", d(r.LowerBound), fmt.Sprintf("makespan is %.2f × max(critical path %s, work ÷ cpus)", r.OverBound, d(r.CriticalPath))},
		{"list schedule", d(r.ListSchedule), fmt.Sprintf("makespan is %.2f × highest rank first, no overhead", r.OverList)},
	})
	if r.LostWork > 0 || r.Requeued > 0 || r.RetriesUsed > 0 {
		t.AppendRow(table.Row{"lost work", d(r.LostWork), fmt.Sprintf("%d requeued, %d retries used", r.Requeued, r.RetriesUsed)})
	}
	t.Render()
}

var runColumns = []column[corral.Run]{
	{"id", func(r corral.Run) any { return r.ID }},
	{"workflow", func(r corral.Run) any { return r.Workflow }},
	{"cluster", func(r corral.Run) any { return r.ClusterName }},
	{"state", func(r corral.Run) any { return r.State }},
	{"tasks", func(r corral.Run) any { return fmt.Sprintf("%d/%d", r.Tasks.Done, r.Tasks.Total) }},
	{"failed", func(r corral.Run) any { return r.Tasks.Failed }},
	{"created", func(r corral.Run) any { return when(r.CreatedAt) }},
	{"ended", func(r corral.Run) any { return when(r.EndedAt) }},
	{"labels", func(r corral.Run) any { return labels(r.Labels) }},
	{"dir", func(r corral.Run) any { return r.Dir }},
	{"reason", func(r corral.Run) any { return r.Reason }},
}

var taskColumns = []column[api.Task]{
	{"task", func(t api.Task) any { return t.ID }},
	{"state", func(t api.Task) any { return t.State }},
	{"attempts", func(t api.Task) any { return t.Attempts }},
	{"worker", func(t api.Task) any { return t.Worker }},
	{"exit", func(t api.Task) any { return exitStatus(t.ExitStatus) }},
	{"started", func(t api.Task) any { return when(t.StartedAt) }},
	{"took", func(t api.Task) any { return took(t) }},
	{"reason", func(t api.Task) any { return t.Reason }},
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
