package cli

// The verbs for existing runs. A run belongs to corrald, so these verbs work from any terminal and at any time; wait
// follows a run exactly as `corral run` does (run.go), with the same exit code.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
)

var runs = noun[corral.RunID]{"run", idKey[corral.RunID], idsOfAll((*api.Client).Runs,
	func(r corral.Run) corral.RunID { return r.ID })}

func (v runVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "runs", Category: workflows,
		Subcommands: []*cli.Command{
			v.listCommand(),
			runs.verb("show", printing((*api.Client).Run, v.show)),
			runs.several("wait",
				v.wait, filterFlag(), progressFlag(""), timeoutFlag()),
			runs.verb("cancel", v.cancel, waitFlag("no task runs any more"), timeoutFlag()),
			runs.verb("retry", v.retry),
			runs.verb("close", printing((*api.Client).CloseRun, runTable.one(v.printer))),
			runs.verb("resume", printing((*api.Client).ResumeRun, runTable.one(v.printer))),
			runs.verb("tasks", v.tasks, &cli.StringSliceFlag{Name: "state",
				Usage: "only those in `STATE`: waiting, ready, running, done, failed or skipped; may be repeated"}),
			runs.verb("log", v.log, &cli.StringFlag{Name: "file", Value: "stderr",
				Usage: "`FILE` of the task's last attempt: stdout, stderr, record.json or, if it was traced, " +
					"trace.json; or what its scripts printed: pre or post"},
				&cli.BoolFlag{Name: "follow", Aliases: []string{"f"},
					Usage: "continue until the task's attempt is over; without TASK all tasks, until the run is over"}),
			runs.several("remove",
				v.remove, &cli.BoolFlag{Name: "purge", Usage: "delete their directories with the results"},
				filterFlag()),
			v.cleanCommand(),
		},
	}
}

// runsOf returns the runs with these ids. An unknown id ends a command before it waits for or removes any run.
func runsOf(c *cli.Context, cl *api.Client, ids []corral.RunID) ([]corral.Run, error) {
	runs := []corral.Run{} // in JSON an empty list is [], never null
	for _, id := range ids {
		r, err := cl.Run(c.Context, id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// wait follows one run after the other to its end, and returns the error of the first run that did not succeed.
func (v runVerbs) wait(c *cli.Context, cl *api.Client, which choice[corral.RunID]) error {
	if len(which.ids) == 0 {
		return which.none()
	}
	runs, err := runsOf(c, cl, which.ids)
	if err != nil {
		return err
	}
	left := countDown(c.Duration("timeout"))
	var worst error
	for i, r := range runs {
		if i > 0 { // the run's state is out of date by now
			if r, err = cl.Run(c.Context, r.ID); err != nil {
				return err
			}
		}
		runs[i], err = v.follow(c, cl, r, left())
		if err != nil && !runs[i].State.Over() {
			return err
		}
		switch {
		case worst == nil:
			worst = err
		case err != nil:
			v.say("corral: %v", err)
		}
	}
	switch {
	case worst != nil:
		return worst
	case which.alone():
		return v.show(runs[0])
	}
	return runTable.list(v.printer, runs)
}

// remove removes the records of runs and, with --purge, their directories. corrald refuses to remove a run that is not
// over.
func (v runVerbs) remove(c *cli.Context, cl *api.Client, which choice[corral.RunID]) error {
	runs, err := runsOf(c, cl, which.ids)
	if err != nil {
		return err
	}
	for i, r := range runs {
		if runs[i], err = cl.RemoveRun(c.Context, r.ID, c.Bool("purge")); err != nil {
			return err
		}
	}
	return runTable.showEach(v.printer, runs, which.alone())
}

// cancel kills the run's tasks, or only the tasks with the given ids; with --wait it returns when they have ended.
func (v runVerbs) cancel(c *cli.Context, cl *api.Client, id corral.RunID) error {
	if c.NArg() > 1 {
		if c.Bool("wait") {
			return corral.ErrorAt(corral.Invalid, "--wait", "cannot be used with TASK: the run continues")
		}
		r, err := cl.CancelTasks(c.Context, id, c.Args().Tail()...)
		if err != nil {
			return objectError{fmt.Sprintf("/v1/runs/%d", id), err}
		}
		return runTable.show(v.printer, r)
	}
	r, err := cl.CancelRun(c.Context, id)
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		if r, err = cl.WaitRun(c.Context, id, c.Duration("timeout")); err != nil {
			return objectError{fmt.Sprintf("/v1/runs/%d", id), err}
		}
	}
	return runTable.show(v.printer, r)
}

// retry makes failed tasks run again.
func (v runVerbs) retry(c *cli.Context, cl *api.Client, id corral.RunID) error {
	if c.NArg() < 2 {
		return corral.Errorf(corral.Invalid, "want the ids of tasks after %d; `corral runs tasks %d --state failed` "+
			"lists those that failed, `corral runs resume %d` retries all of them", id, id, id)
	}
	r, err := cl.RetryTasks(c.Context, id, c.Args().Tail()...)
	if err != nil {
		return objectError{fmt.Sprintf("/v1/runs/%d", id), err}
	}
	return runTable.show(v.printer, r)
}

func (v runVerbs) tasks(c *cli.Context, cl *api.Client, id corral.RunID) error {
	var states []corral.TaskState
	for _, s := range c.StringSlice("state") {
		states = append(states, corral.TaskState(s))
	}
	tasks, err := cl.RunTasks(c.Context, id, states...)
	if err != nil {
		return err
	}
	r, err := cl.Run(c.Context, id)
	if err != nil {
		return err
	}
	return taskTableOf(r.State).list(v.printer, tasks)
}

// taskTableOf returns the listing for the tasks of a run in the given state. In corrald, the remaining tasks of a
// cancelled run are waiting or ready, because the run may be resumed; the listing shows them as cancelled.
func taskTableOf(state corral.RunState) listing[api.TaskStatus] {
	if state != corral.RunCancelled {
		return taskTable
	}
	l := taskTable
	l.columns = slices.Clone(l.columns)
	i := slices.IndexFunc(l.columns, func(c column[api.TaskStatus]) bool { return c.name == "state" })
	l.columns[i].cell = func(t api.TaskStatus) any {
		if slices.Contains([]corral.TaskState{corral.TaskWaiting, corral.TaskReady}, t.State) {
			return "cancelled"
		}
		return t.State
	}
	return l
}

// log prints the output of a task or, if no task is given, the history of the run.
func (v runVerbs) log(c *cli.Context, cl *api.Client, id corral.RunID) error {
	switch {
	case c.Bool("follow"):
		return v.followLog(c, cl, id)
	case c.NArg() == 1:
		return printing((*api.Client).RunHistory, entryTable.many(v.printer))(c, cl, id)
	}
	b, err := cl.RunTaskLog(c.Context, id, c.Args().Get(1), api.LogPart{File: c.String("file")})
	if err == nil {
		_, err = v.out.Write(b)
	}
	return err
}

// followLog prints the output of a task, or of all tasks, as it is written.
func (v runVerbs) followLog(c *cli.Context, cl *api.Client, id corral.RunID) error {
	file := c.String("file")
	switch {
	case c.NArg() > 1 && file != "stdout" && file != "stderr" || c.NArg() == 1 && c.IsSet("file"):
		return corral.ErrorAt(corral.Invalid, "--follow",
			"works with the stdout or stderr of a task, or without TASK for a whole run")
	case c.NArg() > 1:
		return progress.Log(c.Context, cl, progress.TaskLog{Run: id, Task: c.Args().Get(1), File: file}, v.out)
	case v.format == formJSON:
		lines := json.NewEncoder(v.out)
		return progress.Outputs(c.Context, cl, id, func(piece api.OutputPiece) error { return lines.Encode(piece) })
	}
	merged := progress.OutputMerger{W: v.out}
	return progress.Outputs(c.Context, cl, id, merged.Show)
}

// show prints a run, and its report if it is over.
func (v runVerbs) show(r corral.Run) error {
	if err := runTable.show(v.printer, r); err != nil || !v.forPeople() || r.Report == nil {
		return err
	}
	fmt.Fprintln(v.out)
	v.printReport(*r.Report, r.State == corral.RunSucceeded)
	return nil
}

// printReport prints the times and resources of a run and, if the report covers the whole run, the lower bounds beside
// them.
func (v runVerbs) printReport(r corral.RunReport, whole bool) {
	d := func(s corral.Seconds) string { return span(time.Duration(s)) }
	t := newTable(nil)
	parallelism := fmt.Sprintf("parallelism %.2f", r.Parallelism)
	if r.CPUs > 0 { // a run may be over before its workers were counted
		parallelism += fmt.Sprintf(" on %d cpu(s)", r.CPUs)
	}
	t.AppendRows([]table.Row{
		{"makespan", d(r.Makespan), fmt.Sprintf("of it %s until the first task began", d(r.WaitForWorkers))},
		{"task time", d(r.TaskTime), parallelism},
	})
	if whole && r.CPUs > 0 {
		t.AppendRows([]table.Row{
			{"lower bound", d(r.LowerBound),
				fmt.Sprintf("makespan is %.2f × max(critical path %s, work ÷ cpus)", r.OverBound, d(r.CriticalPath))},
			{"list schedule", d(r.ListSchedule),
				fmt.Sprintf("makespan is %.2f × highest rank first, no overhead", r.OverList)},
		})
	}
	if r.LostWork > 0 || r.Requeued > 0 || r.RetriesUsed > 0 {
		t.AppendRow(table.Row{"lost work", d(r.LostWork),
			fmt.Sprintf("%d requeued, %s", r.Requeued, retriesUsed(r))})
	}
	if r.MemoryKills > 0 {
		t.AppendRow(table.Row{"memory", "",
			fmt.Sprintf("%d attempt(s) killed for using more than they may", r.MemoryKills)})
	}
	for _, m := range r.LearnedMemory {
		t.AppendRow(table.Row{"learned memory", fmt.Sprintf("%d MiB", m.MemoryMiB),
			fmt.Sprintf("with which tasks of %s begin, unless the workflow requests more", m.Transformation)})
	}
	for _, o := range r.OverCPUs {
		t.AppendRow(table.Row{"over its cpus", "",
			fmt.Sprintf("%d task(s) of %s: up to %.1f × what they asked for (task %s)",
				o.Tasks, o.Transformation, o.Factor, o.Task)})
	}
	for _, in := range r.ChangedInputs {
		t.AppendRow(table.Row{"changed input", "", fmt.Sprintf(
			"task %s changed %s in place; --inputs copy gives tasks copies", in.Task, in.File)})
	}
	for _, way := range r.Transfers {
		said := fmt.Sprintf("%s of %d job(s) to site %s and back: %s", plan.Bytes(float64(way.Bytes)), way.Jobs,
			way.Site, d(way.Latency))
		if way.Bandwidth > 0 {
			said += fmt.Sprintf(" each, and %s a second", plan.Bytes(way.Bandwidth))
		}
		t.AppendRow(table.Row{"files", d(way.Took), said})
	}
	v.render(t)
}

// runTable shows the folder of results only for a single run, because the path is long.
var runTable = listing[corral.Run]{
	owner: func(r corral.Run) string { return r.Owner },
	id:    func(r corral.Run) string { return strconv.FormatInt(int64(r.ID), 10) },
	none:  "no runs; start one with `corral run WORKFLOW`",
	columns: []column[corral.Run]{
		{"id", func(r corral.Run) any { return r.ID }},
		{"workflow", func(r corral.Run) any { return workflow.Printable(r.Workflow) }},
		{"cluster", func(r corral.Run) any { return r.ClusterName }},
		{"state", func(r corral.Run) any { return choose(r.Open, string(r.State)+", open", r.State) }},
		{"done", func(r corral.Run) any { return fmt.Sprintf("%d of %d", r.Tasks.Done, r.Tasks.Total) }},
		{"failed", func(r corral.Run) any { return unless(r.Tasks.Failed) }},
		{"created", func(r corral.Run) any { return when(r.CreatedAt) }},
		{"labels", func(r corral.Run) any { return labels(r.Labels) }},
		{"reason", func(r corral.Run) any { return progress.Reason(r, time.Now()) }},
	},
	details: []column[corral.Run]{
		{"clustering", func(r corral.Run) any {
			return choose(r.Options.Clustering == clustering.Nothing, "", r.Options.Clustering)
		}},
		{"ended", func(r corral.Run) any { return when(r.EndedAt) }},
		{"open", func(r corral.Run) any {
			return choose(!r.Open, "", fmt.Sprintf("it takes tasks until `corral runs close %d`", r.ID))
		}},
		{"results", func(r corral.Run) any { return filepath.Join(r.Dir, "data") }},
	},
}

// taskTable shows each task with its last execution.
var taskTable = listing[api.TaskStatus]{
	id:   func(t api.TaskStatus) string { return t.ID },
	none: "no tasks in that state",
	columns: []column[api.TaskStatus]{
		{"task", func(t api.TaskStatus) any { return t.ID }},
		{"name", func(t api.TaskStatus) any {
			if t.Grown == nil {
				return ""
			}
			return workflow.Printable(t.Name)
		}},
		{"state", func(t api.TaskStatus) any { return t.State }},
		{"attempts", func(t api.TaskStatus) any { return t.Attempts }},
		{"worker", func(t api.TaskStatus) any { return t.Worker }},
		{"exit", func(t api.TaskStatus) any { return exitStatus(t) }},
		{"took", func(t api.TaskStatus) any { return taskDuration(t) }},
		{"reason", func(t api.TaskStatus) any { return cmp.Or(t.Reason, changedInputs(t)) }},
	},
}

// changedInputs describes the inputs that a completed task has changed.
func changedInputs(t api.TaskStatus) string {
	if len(t.ChangedInputs) == 0 {
		return ""
	}
	return "changed in place: " + strings.Join(t.ChangedInputs, ", ")
}

// exitStatus returns the exit status of a task's last execution, or - if a signal ended the task or it never started.
func exitStatus(t api.TaskStatus) string {
	switch over := t.State == corral.TaskDone || t.State == corral.TaskFailed; {
	case t.ExitStatus != nil && *t.ExitStatus >= 0:
		return fmt.Sprint(*t.ExitStatus)
	case t.ExitStatus != nil || over:
		return "-"
	}
	return ""
}

// taskDuration returns the duration of a task's last execution, or "" unless the execution is over.
func taskDuration(t api.TaskStatus) string {
	if t.EndedAt.IsZero() || t.StartedAt.IsZero() {
		return ""
	}
	return span(t.EndedAt.Sub(t.StartedAt))
}

// retriesUsed describes the number of retries of a run, and how many of them were given more memory.
func retriesUsed(r corral.RunReport) string {
	text := fmt.Sprintf("%d retries used", r.RetriesUsed)
	if r.LargerRetries > 0 {
		text += fmt.Sprintf(", %d with more memory", r.LargerRetries)
	}
	return text
}
