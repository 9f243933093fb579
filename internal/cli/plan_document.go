package cli

// A plan that exists is named by its id, or is a file that `corral plan -o json` has printed. Its document is what the
// planner made; a schedule of many tasks lies apart from it, at corrald or in a file of its own.

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

// showKept prints a plan that corrald has, with its pictures and its schedule where they are asked for.
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

// writeSchedule writes a plan's schedule to the file of --schedule, if one was named, and reports whether that is all that
// is to be printed.
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

// scheduleLines asks corrald for a plan's schedule. Of a dry run there is what its document has.
func scheduleLines(ctx context.Context, cl *api.Client, row corral.Plan) ([]byte, error) {
	if row.ID != 0 {
		return cl.PlanSchedule(ctx, row.ID)
	}
	document, _, err := documentOf(row)
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

// documentOf reads a plan's document; of one whose goal is out of reach it is the nearest that is possible.
func documentOf(row corral.Plan) (document *plan.Plan, nearest bool, err error) {
	document = new(plan.Plan)
	if err := json.Unmarshal(row.Document, document); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // of a type of ours, which says nothing to people
			err = fmt.Errorf("%s is %s", wrong.Field, wrong.Value)
		}
		return nil, false, corral.ErrorAt(corral.Invalid, "plan", "it is not a plan: %w", err)
	}
	if document.Nearest != nil {
		return document.Nearest, true, nil
	}
	return document, false, nil
}

// scheduleInFlag names the file that has a plan's schedule.
func scheduleInFlag() cli.Flag {
	return &cli.StringFlag{Name: "schedule",
		Usage: "read the schedule from `FILE`, where the plan's file has only its digest"}
}

// scheduleOutFlag names the file for a plan's schedule.
func scheduleOutFlag() cli.Flag {
	return &cli.StringFlag{Name: "schedule",
		Usage:  "write the place and time of each task, as lines of JSON, to `FILE`; - is stdout, and all of it",
		Action: func(_ *cli.Context, file string) error { return checkWritable("--schedule", file) }}
}

// A planInput is the plan that the first argument of a command names.
type planInput struct {
	row      corral.Plan // of a file that has the document alone, nothing else is known
	document *plan.Plan  // with its schedule
	foreign  bool        // the schedule is that of another plan
	nearest  bool        // its goal is out of reach, and the document is the nearest plan that is possible
}

// readPlan reads the plan that the first argument names: corrald's if it is an id, else a file.
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
		return r, corral.ErrorAt(corral.Invalid, name, "it has no pilots, not even those of a nearest plan: %s",
			strings.Join(r.document.Reasons, "; "))
	}
	if r.document.Assumed == nil {
		return r, corral.ErrorAt(corral.Invalid, name, "it does not say what it assumes: make the plan again")
	}
	if err := checkAssumptions(r.document.Assumed); err != nil {
		return r, corral.ErrorAt(corral.Invalid, name, "no planner assumes that: %w", err)
	}
	switch given := c.IsSet("schedule"); {
	case given && !isFile:
		return r, corral.ErrorAt(corral.Invalid, "--schedule", "corrald has the schedule of plan %d itself: leave "+
			"--schedule out, or name the plan's file", r.row.ID)
	case given && r.document.Whole():
		return r, corral.ErrorAt(corral.Invalid, "--schedule", "%s has its schedule in it: leave --schedule out", name)
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

// checkAssumptions says which of the assumptions of a plan make no sense.
func checkAssumptions(a *plan.Assumed) error {
	if _, err := sim.ParseSpread(a.Spread); err != nil {
		return fmt.Errorf("error: %w", err)
	}
	return a.Check()
}

// planKept reads a plan that corrald has, and how its schedule is to be had.
func planKept(c *cli.Context, id corral.PlanID) (row corral.Plan, lines func() ([]byte, error), err error) {
	cl, err := connect(c)
	if err == nil {
		row, err = cl.Plan(c.Context, id)
	}
	return row, func() ([]byte, error) { return cl.PlanSchedule(c.Context, id) }, err
}

// planFile reads a plan from a file: what `corral plan -o json` has printed, or the document in it alone.
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

// notAPlan is the error about a file that has no plan; err, if there is one, is that of package json, of which people
// are told the line and not the types.
func notAPlan(name string, text []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return workflow.Place{File: name, Line: line}.Errorf("not JSON: %w", err)
	}
	return corral.ErrorAt(corral.Invalid, name, "it is no plan: want what `corral plan -o json` prints")
}

// fromFile reads the file of a schedule once it is needed.
func fromFile(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if name == "" {
			return nil, corral.ErrorAt(corral.Invalid, "--schedule", "the schedule of the plan lies apart: name its "+
				"file, which `corral plan show ID --schedule FILE` writes")
		}
		text, err := input.ReadFile(name, maxSchedule)
		if err != nil {
			return nil, corral.ErrorAt(corral.Invalid, "--schedule", "%w", err)
		}
		return trimBOM(text), nil
	}
}

// trimBOM is a text without a byte order mark, which some editors put before it.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte(input.ByteOrderMark)) }

// maxSchedule is how long the file of a schedule may be: some ten million tasks.
const maxSchedule = 1 << 30
