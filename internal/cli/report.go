package cli

// report writes a page about a run or a plan. This file requests the data from corrald; package report computes and
// lays out the page.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

func (p *printer) reportCommand() *cli.Command {
	return &cli.Command{
		Name: "report", Category: workflows, ArgsUsage: "[RUN]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "plan", Usage: "report on the plan `ID`"},
			&cli.StringFlag{Name: "out", Usage: "write the page to `FILE` instead of stdout"},
			plotFlag("plot the page's pictures into `FILE`.png or .svg, and write the page only with --out"),
		},
		Action: func(c *cli.Context) error {
			if err := checkReport(c); err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			r, err := reportOf(c, cl)
			if err != nil {
				return err
			}
			return p.writeReport(c, r)
		},
	}
}

// checkReport requires either a run or a plan.
func checkReport(c *cli.Context) error {
	if file := c.String("out"); file != "" {
		if err := checkWritable("--out", file); err != nil {
			return err
		}
	}
	switch named := c.NArg(); {
	case c.IsSet("plan") && named > 0:
		return corral.ErrorAt(corral.Invalid, "--plan", "cannot be used with RUN")
	case !c.IsSet("plan") && named != 1:
		return corral.Errorf(corral.Invalid, "report wants one RUN, or --plan ID")
	}
	return nil
}

// A reporter is a report that can be written as a page, or as its pictures.
type reporter interface {
	Write(w io.Writer) error
	Figures() []plot.Figure
}

// reportOf creates the report that the command line requests.
func reportOf(c *cli.Context, cl *api.Client) (reporter, error) {
	if c.IsSet("plan") {
		id, err := idKey[corral.PlanID]("--plan", c.String("plan"))
		if err != nil {
			return nil, err
		}
		return planReport(c.Context, cl, id)
	}
	id, err := idKey[corral.RunID]("run", c.Args().First())
	if err != nil {
		return nil, err
	}
	return runReport(c.Context, cl, id)
}

func planReport(ctx context.Context, cl *api.Client, id corral.PlanID) (*report.Report, error) {
	facts, err := factsOf(ctx, cl, id)
	if err != nil {
		return nil, err
	}
	return report.Of(facts)
}

// runReport creates a report from corrald's data about a run, and about the run's plan if a report on the plan is
// possible.
func runReport(ctx context.Context, cl *api.Client, id corral.RunID) (*report.RunReport, error) {
	f := report.RunFacts{Now: time.Now()}
	var err error
	if f.Run, err = cl.Run(ctx, id); err != nil {
		return nil, err
	}
	document, err := cl.RunWorkflow(ctx, id)
	if err != nil {
		return nil, err
	}
	f.Flow, _, err = wfformat.Read(ctx, bytes.NewReader(document), fmt.Sprintf("the workflow of run %d", id),
		workflow.Options{})
	if err != nil {
		return nil, err
	}
	if f.Tasks, err = cl.RunTasks(ctx, id); err != nil {
		return nil, err
	}
	if f.Glideins, err = cl.Glideins(ctx, api.Filter{All: true, Cluster: fmt.Sprint(f.Run.Cluster)}); err != nil {
		return nil, err
	}
	if plan, err := strconv.ParseInt(f.Run.Labels["plan"], 10, 64); err == nil {
		f.Plan, _ = planReport(ctx, cl, corral.PlanID(plan)) // by now the plan may be deleted, or used for another run
		if f.Plan != nil && f.Plan.Run != id {
			f.Plan = nil
		}
	}
	return report.OfRun(f), nil
}

// writeReport writes the page and the pictures to their files, or the page to stdout; with -o json or -o yaml, it
// writes the page's data to stdout.
func (p *printer) writeReport(c *cli.Context, r reporter) error {
	file, pictures := c.String("out"), c.String("plot")
	if pictures != "" {
		if err := draw(pictures, r.Figures()...); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := r.Write(&page); err != nil {
		return err
	}
	if file != "" {
		if err := os.WriteFile(file, page.Bytes(), 0o666); err != nil {
			return err
		}
	}
	switch {
	case p.format != formTable:
		return p.encode(r)
	case file != "" || pictures != "":
		return nil
	}
	_, err := p.out.Write(page.Bytes())
	return err
}

// factsOf returns corrald's data about a plan. It omits ledgers that it cannot obtain, such as the ledger of a deleted
// site.
func factsOf(ctx context.Context, cl *api.Client, id corral.PlanID) (f report.Facts, err error) {
	f.Now = time.Now()
	if f.Plan, err = cl.Plan(ctx, id); err != nil {
		return f, err
	}
	if f.Schedule, err = scheduleApart(ctx, cl, f.Plan); err != nil {
		return f, err
	}
	if f.Revisions, err = cl.PlanRevisions(ctx, id); err != nil {
		return f, err
	}
	ours := api.Filter{All: true, Labels: map[string]string{"plan": fmt.Sprint(id)}}
	if f.Glideins, err = cl.Glideins(ctx, ours); err != nil {
		return f, err
	}
	f.Ledgers = ledgersOf(ctx, cl, f.Glideins)
	ours.All = false
	runs, err := cl.Runs(ctx, ours)
	if err != nil || len(runs) == 0 {
		return f, err
	}
	f.Run = &runs[len(runs)-1]
	f.Tasks, err = cl.RunTasks(ctx, f.Run.ID)
	return f, err
}

// ledgersOf returns the ledgers of the glideins' sites, except those that it cannot obtain.
func ledgersOf(ctx context.Context, cl *api.Client, glideins []corral.Glidein) (all []api.Ledger) {
	asked := map[string]bool{}
	for _, g := range glideins {
		if !asked[g.SiteName] {
			asked[g.SiteName] = true
			if l, err := cl.SiteLedger(ctx, g.SiteName); err == nil {
				all = append(all, l)
			}
		}
	}
	return all
}
