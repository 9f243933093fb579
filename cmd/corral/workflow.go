package main

// The verbs on workflow files need no corrald: the formats are read here, as `corral run` reads them.

import (
	"fmt"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/wfformat"
)

func workflowCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "workflow", Category: workflows,
		Subcommands: []*cli.Command{
			{Name: "show", Action: func(c *cli.Context) error { return showWorkflow(c, p) }},
			{
				Name: "validate", Flags: []cli.Flag{&cli.BoolFlag{Name: "strict", Usage: "also refuse unknown fields"}},
				Action: func(c *cli.Context) error { return validateWorkflow(c, p) },
			},
			{
				Name: "convert", Flags: []cli.Flag{&cli.StringFlag{Name: "out",
					Usage: "`FILE` to write (default: stdout)"}},
				Action: func(c *cli.Context) error { return convertWorkflow(c, p) },
			},
		},
	}
}

// showWorkflow prints how large a workflow is, how wide, and how long at the least.
func showWorkflow(c *cli.Context, p *printer) error {
	w, err := readWorkflow(c.Context, p, c.Args().First(), false)
	if err != nil {
		return err
	}
	s := w.Summary()
	if p.format != "table" {
		return p.encode(s)
	}
	seconds := func(s float64) string { return span(time.Duration(s * float64(time.Second))) }
	t := newTable(nil)
	t.AppendRows([]table.Row{
		{"name", w.Name},
		{"tasks", fmt.Sprintf("%d, %d edges, %d levels, at most %d side by side", s.Tasks, s.Edges, s.Levels, s.Width)},
		{"total work", seconds(s.TotalWork)},
		{"critical path", span(time.Duration(s.CriticalPath))},
	})
	p.render(t)
	return nil
}

// validateWorkflow fails for a file that cannot be read and for a workflow that cannot be run.
func validateWorkflow(c *cli.Context, p *printer) error {
	w, err := readWorkflow(c.Context, p, c.Args().First(), c.Bool("strict"))
	if err != nil {
		return err
	}
	if err := w.Runnable(); err != nil {
		return err
	}
	p.say("%s: %d tasks, can be run", c.Args().First(), len(w.Tasks))
	return nil
}

// convertWorkflow writes WfFormat. It replaces no file: --out must name a new one.
func convertWorkflow(c *cli.Context, p *printer) (err error) {
	w, err := readWorkflow(c.Context, p, c.Args().First(), false)
	if err != nil {
		return err
	}
	out := c.String("out")
	if out == "" {
		return wfformat.Write(p.out, w)
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "--out", "%w", err)
	}
	if err := wfformat.Write(f, w); err != nil {
		return err
	}
	return f.Close()
}
