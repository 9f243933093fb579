package cli

// The verbs for workflow files do not need corrald: the client reads the formats itself, as `corral run` does.

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// workflowVerbs are the verbs for workflow files.
type workflowVerbs struct{ *printer }

func (v workflowVerbs) command() *cli.Command {
	strict := func() cli.Flag { return &cli.BoolFlag{Name: "strict", Usage: "treat warnings as errors"} }
	return &cli.Command{
		Name: "workflow", Category: workflows,
		Subcommands: []*cli.Command{
			{
				Name: "show", Flags: []cli.Flag{strict()},
				Action: v.show,
			},
			{
				Name: "validate", Flags: []cli.Flag{strict()},
				Action: v.validate,
			},
			{
				Name: "convert", Flags: []cli.Flag{
					strict(),
					&cli.StringFlag{Name: "to", Usage: "`FORMAT` to write: " +
						strings.Join(formats.Written(), ", ") + " or dag (default: by OUT's extension)"},
					&cli.StringFlag{Name: "clustering", Usage: "`RULE` by which tasks share a job of the DAG: " +
						"horizontal=N, runtime=D, label, vertical"},
					&cli.BoolFlag{Name: "priorities",
						Usage: "give jobs of the DAG higher priorities if more work waits for them"},
				},
				Action: v.convert,
			},
		},
	}
}

// readWorkflow reads a workflow file and prints its warnings.
func (p *printer) readWorkflow(ctx context.Context, file string, strict bool) (*workflow.Workflow, error) {
	w, warnings, err := readWithWarnings(ctx, file, strict)
	p.warn(warnings, err)
	return w, err
}

// readWithWarnings reads a workflow file and returns its warnings. Some formats refer to the environment.
func readWithWarnings(ctx context.Context, file string, strict bool) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	return formats.ReadFile(ctx, file, workflow.Options{Strict: strict, Env: os.LookupEnv})
}

// warn prints warnings, except the warning that is returned as the error: with --strict the first warning is an error.
func (p *printer) warn(warnings []workflow.Warning, err error) {
	for _, warning := range warnings {
		if err == nil || err.Error() != warning.String() {
			p.say("corral: warning: %s", warning)
		}
	}
}

// A shownWorkflow is the output that describes a workflow.
type shownWorkflow struct {
	workflow.Summary
	ByTransformation []workflow.Transformation `json:"by_transformation"`
	Warnings         []shownWarning            `json:"warnings"`
}

// A shownWarning is the output for a warning about the workflow's file.
type shownWarning struct {
	Place   string `json:"place"`
	Message string `json:"message"`
}

func shownWarnings(warnings []workflow.Warning) []shownWarning {
	all := make([]shownWarning, len(warnings))
	for i, w := range warnings {
		all[i] = shownWarning{w.Place.String(), w.Message}
	}
	return all
}

// show prints the size of a workflow, its width, its minimum duration, and its kinds of tasks.
func (v workflowVerbs) show(c *cli.Context) error {
	w, warnings, err := readWithWarnings(c.Context, c.Args().First(), c.Bool("strict"))
	v.warn(warnings, err)
	if err != nil {
		return err
	}
	s := shownWorkflow{w.Summary(), w.Transformations(), shownWarnings(warnings)}
	return v.print(s, workflow.Printable(w.Name), func() { v.summary(s) })
}

// summary prints a table of the whole workflow, and a table of its transformations.
func (p *printer) summary(s shownWorkflow) {
	t := newTable(nil)
	t.AppendRows([]table.Row{
		{"name", workflow.Printable(s.Name)},
		{"tasks", fmt.Sprintf("%d, %d edges, %d levels, at most %d side by side", s.Tasks, s.Edges, s.Levels, s.Width)},
		{"files", filesOf(s.Summary)},
		{"total work", totalWork(s.Summary)},
		{"critical path", span(time.Duration(s.CriticalPath))},
	})
	p.render(t)
	fmt.Fprintln(p.out)
	_ = transformationTable.list(p, s.ByTransformation) // printing a table does not fail
}

// filesOf describes the number of files and their size.
func filesOf(s workflow.Summary) string {
	text := fmt.Sprintf("%d, %d of them inputs of the workflow", s.Files, s.Inputs)
	if s.Unsized < s.Files {
		text += fmt.Sprintf("; %s, %s of inputs", plan.Bytes(float64(s.Bytes)), plan.Bytes(float64(s.InputBytes)))
	}
	if s.Unsized > 0 {
		text += fmt.Sprintf("; %d of unknown size", s.Unsized)
	}
	return text
}

// totalWork describes the total runtime of the tasks, and the number of tasks without an estimate.
func totalWork(s workflow.Summary) string {
	text := inSeconds(s.TotalWork)
	if s.Unestimated > 0 {
		text += fmt.Sprintf("; %d tasks without an estimate", s.Unestimated)
	}
	return text
}

var transformationTable = listing[workflow.Transformation]{
	id: func(x workflow.Transformation) string { return workflow.Printable(x.Name) },
	columns: []column[workflow.Transformation]{
		{"transformation", func(x workflow.Transformation) any { return workflow.Printable(x.Name) }},
		{"tasks", func(x workflow.Transformation) any { return x.Tasks }},
		{"levels", func(x workflow.Transformation) any {
			return choose(x.FirstLevel == x.LastLevel, fmt.Sprint(x.FirstLevel),
				fmt.Sprintf("%d-%d", x.FirstLevel, x.LastLevel))
		}},
		{"mean", estimateOf(func(x workflow.Transformation) any { return span(time.Duration(x.Mean)) })},
		{"least", estimateOf(func(x workflow.Transformation) any { return span(time.Duration(x.Least)) })},
		{"most", estimateOf(func(x workflow.Transformation) any { return span(time.Duration(x.Most)) })},
		{"total", estimateOf(func(x workflow.Transformation) any { return inSeconds(x.Total) })},
		{"share", estimateOf(func(x workflow.Transformation) any { return fmt.Sprintf("%.1f %%", 100*x.Share) })},
		{"cpus", func(x workflow.Transformation) any { return x.MostCPUs }},
		{"memory", func(x workflow.Transformation) any { return choose(x.MostMemory == 0, "", size(x.MostMemory)) }},
	},
}

// estimateOf returns a cell that is empty without an estimate.
func estimateOf(of func(workflow.Transformation) any) func(workflow.Transformation) any {
	return func(x workflow.Transformation) any {
		if x.Estimated == 0 {
			return ""
		}
		return of(x)
	}
}

// A soundWorkflow is the output that describes a valid workflow.
type soundWorkflow struct {
	File     string         `json:"file"`
	Tasks    int            `json:"tasks"`
	Runnable bool           `json:"runnable"`
	Warnings []shownWarning `json:"warnings"`
}

// validate fails for a file that cannot be read and for a workflow that cannot be run.
func (v workflowVerbs) validate(c *cli.Context) error {
	file := c.Args().First()
	w, warnings, err := readWithWarnings(c.Context, file, c.Bool("strict"))
	v.warn(warnings, err)
	if err != nil {
		return err
	}
	if err := w.Runnable(); err != nil {
		return err
	}
	unheeded := w.Schedulable()
	if v.format != formTable {
		err := v.encode(soundWorkflow{file, len(w.Tasks), unheeded == nil, shownWarnings(warnings)})
		if err == nil && unheeded != nil {
			err = printedError{unheeded}
		}
		return err
	}
	if unheeded != nil {
		v.say("%s: %d tasks, valid, but it has features that no run supports", file, len(w.Tasks))
		return unheeded
	}
	v.say("%s: %d tasks, can be run", file, len(w.Tasks))
	return nil
}
