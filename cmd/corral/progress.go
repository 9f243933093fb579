package main

// How far runs are, and what they said before they failed.

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Forms of progress.
const (
	progressAuto  = "auto"  // a bar on a terminal, else lines
	progressLines = "lines" // now and then
	progressJSON  = "json"  // a line for each change
	progressNone  = "none"
)

// A formFlag is a flag with a few words for values, which may be left out: the first one is meant then.
type formFlag struct {
	*cli.StringFlag
	forms []string
}

// progressFlag says how progress is shown, and what else its command does then.
func progressFlag(also string) *formFlag {
	return &formFlag{&cli.StringFlag{
		Name: "progress",
		Usage: also + "show progress in `FORM`: auto (a bar on a terminal, else lines), lines, " +
			"json (a line for each change) or none",
		Action: func(_ *cli.Context, form string) error { return oneOf("--progress", form, progressForms) },
	}, progressForms}
}

var progressForms = []string{progressAuto, progressLines, progressJSON, progressNone}

// oneOf refuses a word that is none of those a flag may have.
func oneOf(flag, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return corral.ErrorAt(corral.Invalid, flag, "%q is none of %s", word, strings.Join(words, ", "))
}

// What is shown of what a failed task wrote to its stderr.
const (
	tailBytes = 4 << 10
	tailLines = 8
)

// showTail shows the last lines that the task wrote to stderr whose failure ended a run: the first that failed. What
// cannot be had is not shown.
func showTail(ctx context.Context, p *printer, cl *api.Client, r corral.Run) {
	if r.State != corral.RunFailed || r.Tasks.Failed == 0 || r.Tasks.Failed > 1000 {
		return
	}
	failed, err := cl.RunTasks(ctx, r.ID, corral.TaskFailed)
	if err != nil || len(failed) == 0 {
		return
	}
	first := slices.MinFunc(failed, func(a, b api.Task) int { return a.EndedAt.Compare(b.EndedAt) })
	text, err := cl.RunTaskTail(ctx, r.ID, first.ID, "stderr", tailBytes)
	if err != nil {
		return
	}
	lines := lastLines(text)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(p.err, "the end of what task %s wrote to stderr:\n", readable(first.ID))
	for _, line := range lines {
		fmt.Fprintln(p.err, "  "+readable(line))
	}
}

// lastLines returns the last few lines of a text, the first of which may have been cut.
func lastLines(text []byte) []string {
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(text), "?"), "\n")
	return lines[max(0, len(lines)-tailLines):]
}
