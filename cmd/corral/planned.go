package main

// A plan that exists is named by its id, or is a file that `corral plan -o json` has printed. Its document is what the
// planner made; a schedule of many tasks lies apart from it, at corrald or in a file of its own.

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

// scheduleOutFlag names the file for a plan's schedule.
func scheduleOutFlag() cli.Flag {
	return &cli.StringFlag{Name: "schedule",
		Usage: "write the place and time of each task, as lines of JSON, to `FILE`; - is stdout, and all of it"}
}

// scheduled writes a plan's schedule to the file of --schedule, if one was named, and reports whether that is all that
// is to be printed.
func scheduled(c *cli.Context, cl *api.Client, row corral.Plan) (all bool, err error) {
	file := c.String("schedule")
	if file == "" {
		return false, nil
	}
	lines, err := scheduleLines(c.Context, cl, row)
	if err != nil {
		return false, err
	}
	if file == "-" {
		_, err = c.App.Writer.Write(lines)
		return true, err
	}
	return false, os.WriteFile(file, lines, 0o666)
}

// scheduleLines asks corrald for a plan's schedule. Of a dry run there is what its document has.
func scheduleLines(ctx context.Context, cl *api.Client, row corral.Plan) ([]byte, error) {
	if row.ID != 0 {
		return cl.PlanSchedule(ctx, row.ID)
	}
	document, err := documentOf(row)
	if err != nil {
		return nil, err
	}
	if !document.Whole() {
		return nil, corral.ErrorAt(corral.Invalid, "--dry-run", "of a dry run no schedule of more than %d tasks is "+
			"kept: leave --dry-run out", plan.MostWithin)
	}
	var lines bytes.Buffer
	_, err = plan.WriteSchedule(&lines, document.Schedule)
	return lines.Bytes(), err
}

// scheduleApart returns the schedule that lies apart from a plan's document; nil if none does.
func scheduleApart(ctx context.Context, cl *api.Client, row corral.Plan) ([]plan.Placement, error) {
	document, err := documentOf(row)
	if err != nil || document.Whole() {
		return nil, err
	}
	lines, err := scheduleLines(ctx, cl, row)
	if err == nil {
		err = document.Attach(bytes.NewReader(lines))
	}
	return document.Schedule, err
}

// documentOf reads a plan's document; of one whose goal is out of reach it is the nearest that is possible.
func documentOf(row corral.Plan) (*plan.Plan, error) {
	var document plan.Plan
	if err := json.Unmarshal(row.Document, &document); err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "plan", "it is not a plan: %w", err)
	}
	if document.Nearest != nil {
		return document.Nearest, nil
	}
	return &document, nil
}
