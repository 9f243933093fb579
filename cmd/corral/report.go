package main

// report writes a page about a plan. What it needs is asked of corrald here; what the page says of it is decided in
// package report.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/report"
)

func reportCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "report", Category: workflows,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "plan", Usage: "report on the plan `ID`"},
			&cli.StringFlag{Name: "out", Usage: "write the page to `FILE` instead of stdout"},
		},
		Action: func(c *cli.Context) error {
			id, err := numbered[corral.PlanID]("--plan", c.String("plan"))
			if err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			facts, err := factsOf(c.Context, cl, id)
			if err != nil {
				return err
			}
			r, err := report.Of(facts)
			if err != nil {
				return err
			}
			return writeReport(p, r, c.String("out"))
		},
	}
}

// writeReport writes the page, or with -o json and -o yaml what it is made of.
func writeReport(p *printer, r *report.Report, file string) error {
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
	case file != "":
		return nil
	}
	_, err := p.out.Write(page.Bytes())
	return err
}

// factsOf asks corrald for what it knows of a plan. A ledger that cannot be had, of a site that is gone, say, is left
// out.
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
	asked := map[string]bool{}
	for _, g := range f.Glideins {
		if !asked[g.SiteName] {
			asked[g.SiteName] = true
			if l, err := cl.SiteLedger(ctx, g.SiteName); err == nil {
				f.Ledgers = append(f.Ledgers, l)
			}
		}
	}
	ours.All = false
	runs, err := cl.Runs(ctx, ours)
	if err != nil || len(runs) == 0 {
		return f, err
	}
	f.Run = &runs[len(runs)-1]
	f.Tasks, err = cl.RunTasks(ctx, f.Run.ID)
	return f, err
}
