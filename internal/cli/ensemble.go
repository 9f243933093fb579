package cli

// ensemble run submits an ensemble of workflows to corrald and follows its progress. corrald starts the workflows'
// runs, and requests and releases pilots, within one budget and one deadline; it continues whatever happens to this
// command.

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

var ensembles = noun[record.ID]{name: "ensemble", key: idKey[record.ID],
	find: idsOfAll((*api.Client).Ensembles, func(e record.Ensemble) record.ID { return e.ID })}

// ensembleVerbs are the verbs for ensembles of workflows.
type ensembleVerbs struct{ *printer }

func (v ensembleVerbs) command() *cli.Command {
	return &cli.Command{Name: "ensemble", Category: workflows, Subcommands: []*cli.Command{
		{
			Name: "run", Flags: ensembleRunFlags(),
			Action: creating(v.newEnsemble, createEnsemble,
				v.followNew),
		},
		ensembleTable.listVerb(v.printer, (*api.Client).Ensembles),
		ensembles.verb("show", printing((*api.Client).Ensemble, v.show)),
		ensembles.verb("report", func(c *cli.Context, cl *api.Client, id record.ID) error {
			r, err := ensembleReport(c.Context, cl, id)
			if err != nil {
				return err
			}
			return v.writeReport(c, r)
		}, &cli.StringFlag{Name: "out", Usage: "write the page to `FILE` instead of stdout"},
			plotFlag("plot the page's pictures into `FILE`.png or .svg, and write the page only with --out")),
		ensembles.verb("cancel", printing((*api.Client).CancelEnsemble, ensembleTable.one(v.printer))),
		ensembles.verb("remove", printing((*api.Client).RemoveEnsemble, ensembleTable.one(v.printer))),
		ensembles.verb("history", printing((*api.Client).EnsembleHistory, entryTable.many(v.printer))),
	}}
}

func ensembleRunFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "budget", Usage: "spend `AMOUNT` at most, such as 40ch or 18USD"},
		deadlineFlag("complete workflows within", ""),
		&cli.StringFlag{Name: "algorithm", Value: forecast.Rehearsal,
			Usage: "`NAME`: rehearsal, spss, wa-dpds, dpds or spds"},
		clusterFlag(),
		&cli.StringFlag{Name: "site", Usage: "request pilots at `SITE` (default: the only one)"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "request pilots of `N` cpus"},
		&cli.IntFlag{Name: "memory", Usage: "request pilots with `MIB` of memory (default: their share of a host)"},
		durationFlag("walltime", 0, "request pilots for `D` at most (default: until the deadline)"),
		&cli.IntFlag{Name: "most", Usage: "hold `N` pilots at once at most (default: the site's limit)"},
		&cli.StringFlag{Name: "error", Value: "0", Usage: "expect runtimes to differ from their estimates by `LAW`: " +
			"0, uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2"},
		&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "seed random numbers with `N`"},
		durationFlag("default-runtime", 0, "a task without an estimate takes `D`"),
		retriesFlag(2, ""), clusteringFlag(""),
		&cli.BoolFlag{Name: "stream",
			Usage: "on a cluster of kind condor: run tasks in worker jobs, instead of an HTCondor job for each"},
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "do not follow it"},
		labelFlag(), keyFlag(),
	}
}

// newEnsemble creates a request with the workflows that the arguments name.
func (v ensembleVerbs) newEnsemble(c *cli.Context) (n api.NewEnsemble, err error) {
	n = api.NewEnsemble{Cluster: c.String("cluster"), Site: c.String("site"), Algorithm: c.String("algorithm"),
		CPUs: c.Int("cpus"), MemoryMiB: c.Int("memory"), Walltime: corral.Seconds(c.Duration("walltime")),
		Most: c.Int("most"), Error: c.String("error"), Seed: c.Uint64("seed"),
		DefaultRuntime: corral.Seconds(c.Duration("default-runtime")),
		Options: corral.RunOptions{Retries: c.Int("retries"), Clustering: c.String("clustering"),
			Stream: c.Bool("stream")}}
	if n.Budget, err = amount(c, "budget"); err != nil {
		return n, err
	}
	if n.Deadline, n.DeadlineAt, err = deadlineOf(c, time.Now()); err != nil {
		return n, err
	}
	v.sayDeadline(n.DeadlineAt)
	files, name, err := ensembleFiles(c.Context, c.Args().Slice())
	if err != nil {
		return n, err
	}
	n.Name = name
	for _, f := range files {
		w, err := v.readWorkflow(c.Context, f.File, false)
		if err == nil {
			err = cmp.Or(w.Runnable(), w.Schedulable())
		}
		if err != nil {
			return n, err
		}
		if f.Label != "" {
			w.Name = f.Label
		}
		var document bytes.Buffer
		if err := wfformat.Write(&document, w); err != nil {
			return n, err
		}
		m := api.NewMember{Workflow: document.Bytes(), WorkflowName: f.File, Labels: labelsOf(c, "label")}
		if !strings.HasPrefix(c.String("server"), "https:") { // a remote corrald cannot access a folder of this machine
			m.SourceDir = w.Dir
		}
		n.Workflows = append(n.Workflows, m)
	}
	return n, nil
}

// An ensembleFile is an entry of an ensemble.yaml.
type ensembleFile struct {
	File     string `json:"file"`
	Priority *int   `json:"priority"` // 0 is the highest; absent: after the preceding entry
	Label    string `json:"label"`    // the name shown in output; empty: the workflow's own name
}

// The name of the file that lists the workflows of a folder, and its maximum length in bytes: the time for reading
// deeply nested YAML grows with the square of the length.
const (
	ensembleListName = "ensemble.yaml"
	maxEnsembleList  = 256 << 10
)

// ensembleFiles returns the workflow files that the arguments name, the file with the highest priority first: the
// arguments themselves or, for a folder, the files listed in its ensemble.yaml or, if there is no such list, all its
// workflows by name.
func ensembleFiles(ctx context.Context, args []string) (files []ensembleFile, name string, err error) {
	if len(args) == 0 {
		return nil, "", corral.Errorf(corral.Invalid, "name a folder with %s, or workflow files by their priority",
			ensembleListName)
	}
	if info, err := os.Stat(args[0]); len(args) > 1 || err != nil || !info.IsDir() {
		for _, arg := range args {
			files = append(files, ensembleFile{File: arg})
		}
		return files, filepath.Base(args[0]), nil
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return nil, "", err
	}
	list := filepath.Join(args[0], ensembleListName)
	if _, err := os.Stat(list); err == nil {
		files, err = listedFiles(ctx, list)
		return files, filepath.Base(dir), err
	}
	entries, err := os.ReadDir(args[0])
	if err != nil {
		return nil, "", corral.ErrorAt(corral.Invalid, args[0], "%w", err)
	}
	for _, e := range entries {
		if _, known := formats.Of(e.Name()); known && !e.IsDir() {
			files = append(files, ensembleFile{File: filepath.Join(args[0], e.Name())})
		}
	}
	if len(files) == 0 {
		err = corral.ErrorAt(corral.Invalid, args[0], "it contains neither %s nor a workflow", ensembleListName)
	}
	return files, filepath.Base(dir), err
}

// listedFiles reads an ensemble.yaml: a list of files, ordered by their priorities or, without priorities, by position.
func listedFiles(ctx context.Context, list string) (files []ensembleFile, err error) {
	text, err := readAll(ctx, list, nil, maxEnsembleList)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, list, "%w", err)
	}
	if _, err := parseYAML(list, text, &files, "list"); err != nil {
		return nil, err
	}
	named := map[int]string{}
	for i := range files {
		f := &files[i]
		if f.File == "" {
			return nil, corral.ErrorAt(corral.Invalid, list, "entry %d has no file", i+1)
		}
		if (f.Priority == nil) != (files[0].Priority == nil) {
			return nil, corral.ErrorAt(corral.Invalid, list, "%s: either all workflows have a priority, or none",
				f.File)
		}
		if f.Priority != nil && named[*f.Priority] != "" {
			return nil, corral.ErrorAt(corral.Invalid, list, "%s and %s have the same priority %d: of two workflows "+
				"one must come first", named[*f.Priority], f.File, *f.Priority)
		}
		if f.Priority != nil {
			named[*f.Priority] = f.File
		}
		if !filepath.IsAbs(f.File) {
			f.File = filepath.Join(filepath.Dir(list), f.File)
		}
	}
	if len(files) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, list,
			"it lists no workflow: want entries such as `- file: a.dax`")
	}
	if files[0].Priority != nil {
		slices.SortFunc(files, func(a, b ensembleFile) int { return cmp.Compare(*a.Priority, *b.Priority) })
	}
	return files, nil
}

// createEnsemble creates the ensemble, even if the command is interrupted in the meantime.
func createEnsemble(cl *api.Client, ctx context.Context, n api.NewEnsemble, key string) (record.Ensemble, error) {
	ctx, cancel := outlasting(ctx)
	defer cancel()
	return cl.CreateEnsemble(ctx, n, key)
}

// followNew shows the progress of each workflow until the ensemble has ended. An interrupt does not affect the
// ensemble.
func (v ensembleVerbs) followNew(c *cli.Context, cl *api.Client, e record.Ensemble) error {
	v.say("ensemble %d: %s, %s by %s; decided by %s, on up to %d pilots of site %s", e.ID,
		plural(len(e.Members), "workflow"), e.Goal.Budget, brief(e.Goal.Deadline), e.Goal.Algorithm, e.Pilots.Most,
		e.Pilots.Site)
	if c.Bool("detach") {
		v.say("it continues by itself; see `corral ensemble show %d`", e.ID)
		return ensembleTable.show(v.printer, e)
	}
	if v.quiet {
		fmt.Fprintln(v.out, e.ID) // a script receives the id in any case
	}
	seen := make([]record.Standing, len(e.Members))
	e, err := progress.Ensemble(c.Context, cl, e, func(e record.Ensemble) {
		for k, m := range e.Members {
			if m.Standing != seen[k] && m.Standing != record.Waiting {
				v.say("%s %s", elapsed(time.Since(e.CreatedAt)), memberNews(k, m))
			}
			seen[k] = m.Standing
		}
	})
	switch {
	case c.Context.Err() != nil:
		v.say("ensemble %d continues by itself; see `corral ensemble show %[1]d`, end it with "+
			"`corral ensemble cancel %[1]d`", e.ID)
		return c.Context.Err()
	case err != nil:
		return objectError{fmt.Sprintf("/v1/ensembles/%d", e.ID), err}
	case v.quiet:
		return nil
	}
	return v.show(e)
}

func elapsed(d time.Duration) string { return fmt.Sprintf("%7s", d.Round(time.Second)) }

// memberNews describes a change of a workflow.
func memberNews(place int, m record.Member) string {
	text := fmt.Sprintf("workflow %d (%s) is %s", place, m.Workflow, m.Standing)
	if m.Standing == record.Begun {
		text += fmt.Sprintf(" as run %d", m.Run)
	}
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

// plural returns a number with its noun.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// show prints a line for each workflow, followed by a summary.
func (v ensembleVerbs) show(e record.Ensemble) error {
	if !v.forPeople() {
		return ensembleTable.show(v.printer, e)
	}
	if err := memberTable.list(v.printer, e.Members); err != nil {
		return err
	}
	fmt.Fprintf(v.out, "\nensemble %d is %s; %d of %s completed within %s, %s of %s spent\n", e.ID, ensembleState(e),
		e.Completed(), plural(len(e.Members), "workflow"), brief(e.Goal.Deadline), e.Spent, e.Goal.Budget)
	return nil
}

func ensembleState(e record.Ensemble) string {
	if e.Reason == "" {
		return string(e.State)
	}
	return string(e.State) + ": " + e.Reason
}

var memberTable = listing[record.Member]{
	id: func(m record.Member) string { return m.Workflow },
	columns: []column[record.Member]{
		{"workflow", func(m record.Member) any { return m.Workflow }},
		{"tasks", func(m record.Member) any { return m.Tasks }},
		{"runtime", func(m record.Member) any { return brief(m.Runtime) }},
		{"stands", func(m record.Member) any { return m.Standing }},
		{"run", func(m record.Member) any { return unless(m.Run) }},
		{"reason", func(m record.Member) any { return m.Reason }},
	},
}

var ensembleTable = listing[record.Ensemble]{
	owner: func(e record.Ensemble) string { return e.Owner },
	id:    func(e record.Ensemble) string { return fmt.Sprint(e.ID) },
	none:  "no ensembles; start one with `corral ensemble run`",
	columns: []column[record.Ensemble]{
		{"id", func(e record.Ensemble) any { return e.ID }},
		{"name", func(e record.Ensemble) any { return e.Name }},
		{"state", func(e record.Ensemble) any { return e.State }},
		{"completed", func(e record.Ensemble) any { return fmt.Sprintf("%d of %d", e.Completed(), len(e.Members)) }},
		{"spent", func(e record.Ensemble) any { return e.Spent }},
		{"budget", func(e record.Ensemble) any { return e.Goal.Budget }},
		{"deadline", func(e record.Ensemble) any {
			return when(e.CreatedAt.Add(time.Duration(e.Goal.Deadline)))
		}},
		{"cluster", func(e record.Ensemble) any { return e.ClusterName }},
		{"reason", func(e record.Ensemble) any { return e.Reason }},
	},
}

// ensembleReport creates a report from corrald's data about an ensemble.
func ensembleReport(ctx context.Context, cl *api.Client, id record.ID) (*report.EnsembleReport, error) {
	f := report.EnsembleFacts{Now: time.Now(), Tasks: map[corral.RunID][]api.TaskStatus{}}
	var err error
	if f.Ensemble, err = cl.Ensemble(ctx, id); err != nil {
		return nil, err
	}
	ours := api.Filter{All: true, Labels: map[string]string{record.Label: fmt.Sprint(id)}}
	if f.Glideins, err = cl.Glideins(ctx, ours); err != nil {
		return nil, err
	}
	ours.All = false // a removed run no longer has any tasks
	if f.Runs, err = cl.Runs(ctx, ours); err != nil {
		return nil, err
	}
	for _, r := range f.Runs {
		if f.Tasks[r.ID], err = cl.RunTasks(ctx, r.ID); err != nil {
			return nil, err
		}
	}
	return report.OfEnsemble(f), nil
}
