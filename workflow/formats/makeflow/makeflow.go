// Package makeflow reads classic Makeflow files, the Make-like language of the Cooperative Computing Tools: rules with
// targets, sources and one command, variables, categories with resources, and exported variables.
//
// A rule becomes a task. Its id is its first target, with slashes replaced by colons; its name, the transformation, is
// its category if it has one, and otherwise the program at the beginning of its command. The command runs in a shell,
// as in Makeflow. Tasks are ordered by files alone.
//
// Text is parsed like in Makeflow, with its rules for quotes, backslashes and substitution; see text.go. A variable
// that the file does not define is taken from the environment. Ignored with a warning are LOCAL, because every task
// runs on a worker; sources that are absolute paths, which must exist on the worker; and options of batch systems.
// Refused, with the line, are nested makeflows, remote names (a->b), automatic variables such as $@, and everything
// that Makeflow refuses: a second command, a file that two rules make, an undefined variable.
//
// A logical line, with its continuations and the quotes that span lines, is held in memory and its length is limited.
// So are the values of variables, which may contain each other and thus double with every line.
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

// Read reads a workflow in Makeflow's language; name is the file name for errors and warnings, and its last part is the
// workflow's name. Every error has kind Invalid and the place name:line, with the line if there is one, except that a
// cancelled ctx stops the reading with its cause. Warnings are returned with the workflow and with an error.
func Read(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	wf := &workflow.Workflow{Name: workflow.NameOf(name)}
	limited := input.Limit(ctx, text, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes))
	lines := newLines(limited, name, cmp.Or(opts.MaxValue, workflow.DefaultMaxValue))
	r := newReader(lines, wf, opts)
	err := r.read(ctx)
	if err == nil {
		err = context.Cause(ctx) // the graph is no longer needed
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

// Sniff reports whether a text with this beginning may be in this format: whether a line begins with a directive, or
// with a tab like a command, or with another blank after a line with a colon.
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
