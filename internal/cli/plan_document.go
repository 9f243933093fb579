package cli

// An existing plan is specified by its id, or by a file with the output of `corral plan -o json`. The plan's document
// is the planner's result; a schedule of many tasks is stored separately from the document, in corrald or in a file of
// its own.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow"
)

// showKept prints a plan that corrald stores, and writes its pictures and its schedule if requested.
func (v planVerbs) showKept(c *cli.Context, cl *api.Client, id corral.PlanID) error {
	row, err := cl.Plan(c.Context, id)
	if err != nil {
		return err
	}
	all, err := writeSchedule(c, cl, row)
	if err = errors.Join(err, plotPlan(c, cl, row)); err != nil || all {
		return err
	}
	if err := v.show(row, true); err != nil || !v.forPeople() || !row.Auto {
		return err
	}
	return v.showRevisions(c, cl, id)
}

// writeSchedule writes a plan's schedule to the file of --schedule, if given, and reports whether nothing else should
// be printed.
func writeSchedule(c *cli.Context, cl *api.Client, row corral.Plan) (all bool, err error) {
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

// scheduleLines returns a plan's schedule from corrald or, for a dry run, the schedule in the plan's document.
func scheduleLines(ctx context.Context, cl *api.Client, row corral.Plan) ([]byte, error) {
	if row.ID != 0 {
		return cl.PlanSchedule(ctx, row.ID)
	}
	document, _, err := documentOf(row)
	if err != nil {
		return nil, err
	}
	if !document.Whole() {
		return nil, corral.ErrorAt(corral.Invalid, "--dry-run", "a schedule of more than %d tasks is not "+
			"stored for a dry run: leave --dry-run out", plan.MostWithin)
	}
	var lines bytes.Buffer
	_, err = plan.WriteSchedule(&lines, document.Schedule)
	return lines.Bytes(), err
}

// scheduleApart returns the schedule that is stored separately from a plan's document, or nil.
func scheduleApart(ctx context.Context, cl *api.Client, row corral.Plan) ([]plan.Placement, error) {
	document, _, err := documentOf(row)
	if err != nil || document.Whole() {
		return nil, err
	}
	lines, err := scheduleLines(ctx, cl, row)
	if err == nil {
		err = document.Attach(bytes.NewReader(lines))
	}
	return document.Schedule, err
}

// documentOf reads a plan's document; if the goal is out of reach, it returns the nearest feasible plan.
func documentOf(row corral.Plan) (document *plan.Plan, nearest bool, err error) {
	document = new(plan.Plan)
	if err := json.Unmarshal(row.Document, document); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // the error's text names a Go type, which is meaningless to users
			err = fmt.Errorf("%s is %s", wrong.Field, wrong.Value)
		}
		return nil, false, corral.ErrorAt(corral.Invalid, "plan", "it is not a plan: %w", err)
	}
	if document.Nearest != nil {
		return document.Nearest, true, nil
	}
	return document, false, nil
}

// scheduleInFlag returns the flag for the file from which a plan's schedule is read.
func scheduleInFlag() cli.Flag {
	return &cli.StringFlag{Name: "schedule",
		Usage: "read the schedule from `FILE`, if the plan's file has only its digest"}
}

// scheduleOutFlag returns the flag for the file to which a plan's schedule is written.
func scheduleOutFlag() cli.Flag {
	return &cli.StringFlag{Name: "schedule",
		Usage:  "write the place and time of each task, as lines of JSON, to `FILE`; - prints only the schedule",
		Action: func(_ *cli.Context, file string) error { return checkWritable("--schedule", file) }}
}

// A planInput is the plan that the first argument of a command specifies.
type planInput struct {
	row      corral.Plan // contains only the document if the file has no other content
	document *plan.Plan  // with its schedule
	foreign  bool        // the schedule belongs to another plan
	nearest  bool        // the goal is out of reach; the document is the nearest feasible plan
}

// readPlan reads the plan that the first argument specifies: a number is the id of a plan that corrald stores, any
// other argument is the name of a file.
func readPlan(c *cli.Context) (r planInput, err error) {
	name, lines := c.Args().First(), fromFile(c.String("schedule"))
	id, notOne := strconv.ParseInt(name, 10, 64)
	isFile := notOne != nil || id <= 0
	if isFile {
		r.row, err = planFile(name)
	} else {
		r.row, lines, err = planKept(c, corral.PlanID(id))
	}
	if err != nil {
		return r, err
	}
	if r.document, r.nearest, err = documentOf(r.row); err != nil {
		return r, corral.ErrorAt(corral.Invalid, name, "%w", errors.Unwrap(err))
	}
	if !r.document.Feasible {
		return r, corral.ErrorAt(corral.Invalid, name, "it has no pilots, and no nearest plan: %s",
			strings.Join(r.document.Reasons, "; "))
	}
	if r.document.Assumed == nil {
		return r, corral.ErrorAt(corral.Invalid, name, "it does not contain its assumptions: make the plan again")
	}
	if err := checkAssumptions(r.document.Assumed); err != nil {
		return r, corral.ErrorAt(corral.Invalid, name, "invalid assumption: %w", err)
	}
	switch given := c.IsSet("schedule"); {
	case given && !isFile:
		return r, corral.ErrorAt(corral.Invalid, "--schedule", "corrald has the schedule of plan %d: leave "+
			"--schedule out, or name the plan's file", r.row.ID)
	case given && r.document.Whole():
		return r, corral.ErrorAt(corral.Invalid, "--schedule", "%s contains its schedule: leave --schedule out", name)
	case r.document.Whole():
		return r, nil
	}
	text, err := lines()
	if err != nil {
		return r, err
	}
	var found plan.Apart
	r.document.Schedule, found, err = plan.ReadSchedule(bytes.NewReader(text))
	r.foreign = found != *r.document.Apart
	return r, err
}

// checkAssumptions returns an error if an assumption of a plan is invalid.
func checkAssumptions(a *plan.Assumed) error {
	if _, err := sim.ParseSpread(a.Spread); err != nil {
		return fmt.Errorf("error: %w", err)
	}
	return a.Check()
}

// planKept reads a plan that corrald stores, and returns a function that reads the plan's schedule.
func planKept(c *cli.Context, id corral.PlanID) (row corral.Plan, lines func() ([]byte, error), err error) {
	cl, err := connect(c)
	if err == nil {
		row, err = cl.Plan(c.Context, id)
	}
	return row, func() ([]byte, error) { return cl.PlanSchedule(c.Context, id) }, err
}

// planFile reads a plan from a file, which contains either the output of `corral plan -o json` or only the document in
// that output.
func planFile(name string) (row corral.Plan, err error) {
	text, err := input.ReadFile(name, api.MaxRunBody)
	if err != nil {
		return row, corral.ErrorAt(corral.Invalid, name, "%w", pathCause(err))
	}
	text = trimBOM(text)
	if err := json.Unmarshal(text, &row); err != nil {
		return row, notAPlan(name, text, err)
	}
	if row.Document == nil {
		row.Document = text
	}
	var kind struct {
		Feasible *bool `json:"feasible"`
	}
	if err := json.Unmarshal(row.Document, &kind); err != nil || kind.Feasible == nil {
		return row, notAPlan(name, text, nil)
	}
	return row, nil
}

// notAPlan returns the error for a file that does not contain a plan. If err is a syntax error of package json, the
// result names the line; other errors name Go types and are omitted.
func notAPlan(name string, text []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return workflow.Place{File: name, Line: line}.Errorf("not JSON: %w", err)
	}
	return corral.ErrorAt(corral.Invalid, name, "it is not a plan: want the output of `corral plan -o json`")
}

// fromFile returns a function that reads a schedule from a file.
func fromFile(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if name == "" {
			return nil, corral.ErrorAt(corral.Invalid, "--schedule", "the schedule of the plan is stored apart: name "+
				"its file, which `corral plan show ID --schedule FILE` writes")
		}
		text, err := input.ReadFile(name, maxSchedule)
		if err != nil {
			return nil, corral.ErrorAt(corral.Invalid, "--schedule", "%w", err)
		}
		return trimBOM(text), nil
	}
}

// trimBOM removes the byte order mark that some editors insert at the beginning of a text.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte(input.ByteOrderMark)) }

// maxSchedule is the maximum length of a schedule file in bytes, enough for about ten million tasks.
const maxSchedule = 1 << 30
