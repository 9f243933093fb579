package cli

// The progress of runs, and the last output of failed tasks.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Forms of progress.
const (
	progressAuto  = "auto"  // a bar on a terminal, otherwise lines
	progressLines = "lines" // lines from time to time
	progressJSON  = "json"  // a line of JSON for each change
	progressNone  = "none"
)

// progressForms lists the values of --progress.
var progressForms = []string{progressAuto, progressLines, progressJSON, progressNone}

// progressFlag selects the form of progress. also describes a further effect of the flag.
func progressFlag(also string) cli.Flag {
	return &cli.StringFlag{
		Name: "progress",
		Usage: also + "show progress in `FORM`: auto (a bar on a terminal, else lines), lines, " +
			"json (a line for each change) or none",
		Action: func(_ *cli.Context, form string) error {
			if slices.Contains(progressForms, form) {
				return nil
			}
			return corral.ErrorAt(corral.Invalid, "--progress", "%q is none of %s", form,
				strings.Join(progressForms, ", "))
		},
	}
}

// Limits on the shown output of failed tasks.
const (
	tailTasks = 5 // maximum number of failed tasks to examine
	tailBytes = 4 << 10
	tailLines = 8
)

// showTail shows the last lines that a failed task wrote to stderr: the first task to fail that wrote any output.
// Errors are ignored, and nothing is printed alongside JSON, because programs read it.
func (v runVerbs) showTail(c *cli.Context, cl *api.Client, r corral.Run) {
	const most = 1000 // a list of more failures would be long, and they probably have a common cause
	if r.State != corral.RunFailed || r.Tasks.Failed > most || c.String("progress") == progressJSON {
		return
	}
	failed, err := cl.RunTasks(c.Context, r.ID, corral.TaskFailed)
	if err != nil {
		return
	}
	neverBegan := func(t api.TaskStatus) bool { return t.EndedAt.IsZero() }
	failed = slices.DeleteFunc(failed, neverBegan)
	slices.SortStableFunc(failed, func(a, b api.TaskStatus) int { return a.EndedAt.Compare(b.EndedAt) })
	for _, t := range failed[:min(len(failed), tailTasks)] {
		text, err := cl.RunTaskLog(c.Context, r.ID, t.ID, api.LogPart{File: "stderr", Last: tailBytes})
		lines := lastLines(text)
		if err != nil || len(lines) == 0 {
			continue
		}
		fmt.Fprintf(v.err, "the last lines of task %s on stderr:\n", readable(t.ID))
		for _, line := range lines {
			fmt.Fprintln(v.err, "  "+readable(line))
		}
		return
	}
}

// lastLines returns the last lines of a text; the first of these lines may be incomplete.
func lastLines(text []byte) []string {
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(text), "?"), "\n")
	return lines[max(0, len(lines)-tailLines):]
}
