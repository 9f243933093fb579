// Package makeflow reads classic Makeflow files, the Make-like language of the Cooperative Computing Tools: rules with
// targets, sources and one command, variables, categories with resources, and exported variables.
//
// A rule becomes a task. Its id is its first target, with slashes replaced by colons; its name, the transformation, is
// the rule's category or, if the rule has none, the program at the beginning of the command. The command runs in a
// shell, as in Makeflow. Tasks are ordered by files alone.
//
// Text is parsed by Makeflow's rules for quotes, backslashes and substitution. A variable that the file does not define
// is taken from the environment (workflow.Options.Env). The reader ignores, with a warning, LOCAL, because every task
// runs on a worker, sources that are absolute paths, which must exist on the worker, and options for batch systems. It
// refuses, with the line, nested makeflows, remote names (a->b), automatic variables such as $@, and everything that
// Makeflow itself refuses: a second command, a file that two rules make, an undefined variable. The package does not
// write Makeflow files.
//
// A logical line, with its continuations and the quotes that span lines, is held in memory, and its length is limited.
// The size of the values of variables is also limited, because variables may contain each other, so that their size may
// double with every line.
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
// workflow's name. Every error has kind Invalid and the place name:line, or name if the error concerns no line, except
// that if ctx is cancelled, Read stops and returns the cause. Warnings are returned both with the workflow and with an
// error.
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

// Sniff reports whether a text with this beginning may be in this format, i.e. whether a line begins with a directive,
// with a tab (like a command), or, after a line with a colon, with a space.
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
