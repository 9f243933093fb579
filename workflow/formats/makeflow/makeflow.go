// Package makeflow reads classic Makeflow files, the language of the Cooperative Computing Tools that looks like Make:
// rules with targets, sources and one command, variables, categories with resources, and exported variables.
//
// A rule becomes a task. Its id is its first target, with a colon in place of each slash; its name, the
// transformation, is its category if it has one, and otherwise the program that its command begins with. The command
// runs in a shell, as Makeflow runs it. The files alone order the tasks.
//
// Text is taken apart as Makeflow does it, with its rules for quotes, backslashes and substitution; see text.go. A
// variable that the file does not define comes from the environment. Left out with a warning: LOCAL, because every task
// runs on a worker; sources that are absolute paths, which have to be on the worker; and options of batch systems.
// Refused, with the line: makeflows in makeflows, remote names (a->b), automatic variables such as $@, and all that
// Makeflow refuses: a second command, a file that two rules make, a variable that nobody defines.
//
// A logical line, with its continuations and the quotes that span lines, is held as a whole and bounded; so are the
// values of variables, which may contain each other and thus double with every line.
package makeflow

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// Read reads a workflow in Makeflow's language; name is what errors and warnings call it, and its last part is the
// workflow's name. Every error has kind Invalid and the place name:line, as far as there is a line, except after the
// end of ctx, which ends the reading: then it is ctx's cause. Warnings come with the workflow and with an error.
func Read(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	wf := &workflow.Workflow{Name: workflow.NameOf(name)}
	limited := input.Limit(ctx, text, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes))
	lines := newLines(limited, name, cmp.Or(opts.MaxValue, workflow.DefaultMaxValue))
	r := newReader(lines, wf, opts)
	err := r.read(ctx)
	if err == nil {
		err = context.Cause(ctx) // nobody waits for the graph any longer
	}
	if err == nil {
		err = r.builder.Build(lines.here())
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("reading %s: %w", name, cause)
	}
	if err != nil {
		return nil, r.builder.Warnings, err
	}
	return wf, r.builder.Warnings, nil
}

// Sniff reports whether a text that begins with these bytes may be in this format: whether a line begins with a
// directive, or with a tab as commands do, or with another blank behind a line with a colon.
func Sniff(begin []byte) bool {
	rule := false
	for line := range bytes.Lines(begin) {
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case line[0] == '\t', line[0] == ' ' && rule, bytes.HasPrefix(line, []byte(".MAKEFLOW")):
			return true
		case line[0] != '#':
			rule = bytes.IndexByte(line, ':') > 0
		}
	}
	return false
}
