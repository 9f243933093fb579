// Package wfformat reads WfFormat 1.4 and 1.5, the JSON format of WfCommons, and writes 1.5. One file holds a
// workflow's structure (workflow.specification), and its commands, cpus and measured runtimes (workflow.execution);
// in 1.4 each task has all of its own. Published traces come in it, Corral keeps its runs in it, and corrald accepts
// no other format: the client converts the rest.
//
// A document is read value by value and never held as a whole. What may be large is bounded: the text, each value in
// it, whitespace, and the number of tasks. So a file of two gigabytes takes the memory of its tasks, and a hostile
// one is refused before it takes more. Each error and each warning names its line, and the column where the text is
// not JSON.
//
// A reader walks the fields and feeds a workflow.Builder, which checks what all formats have in common. Left to this
// package is what only WfFormat does: it says each edge twice, in lists of parents and of children, which may
// disagree; it tells of a task in two places, which are joined by its id; it has unknown fields in many files, of
// which the reader warns. In our own extension an unknown field is an error.
//
// WfFormat has no place for some of what a run needs. The object x-corral of a specification task holds these things;
// docs/x-corral.schema.json describes it. The reader does not keep the measured energy and power, or a task's priority,
// because the order of a run follows from the graph.
package wfformat

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// Read reads a workflow in WfFormat 1.4 or 1.5; name is what errors and warnings call it. Every error has kind
// Invalid and the place name:line, as far as there is a line, except after the end of ctx, which ends the reading:
// then it is ctx's cause. Warnings come with the workflow and with an error.
func Read(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	wf := &workflow.Workflow{}
	b := workflow.NewBuilder(wf, opts)
	if again, ok := text.(io.ReadSeeker); ok {
		n := countTasks(again, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes))
		b.Grow(min(n, cmp.Or(opts.MaxTasks, workflow.DefaultMaxTasks)))
		text = bufio.NewReaderSize(text, 64<<10)
	}
	doc := newDocument(
		input.Limit(ctx, text, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes)), name,
		cmp.Or(opts.MaxValue, workflow.DefaultMaxValue),
	)
	r := &reader{doc: doc, wf: wf, builder: b, maxExecutions: cmp.Or(opts.MaxTasks, workflow.DefaultMaxTasks)}
	err := r.read()
	if err == nil {
		err = context.Cause(ctx) // nobody waits for the graph any longer
	}
	if err == nil {
		err = b.Build(doc.here())
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("reading %s: %w", name, cause)
	}
	if err != nil {
		return nil, b.Warnings, err
	}
	return wf, b.Warnings, nil
}

// countTasks guesses how many tasks a text has, by the fields that only they have, and goes back to where it was. A
// list of a million tasks that grows is in memory twice; to look through the text takes a hundredth of the time to read
// it. What cannot be looked through has no tasks as far as is known.
func countTasks(text io.ReadSeeker, most int64) (n int) {
	begin, err := text.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0 // a pipe, say
	}
	const field, shortest = `"parents"`, 64 // bytes of a task, its execution included
	buffer := make([]byte, 64<<10)
	kept, size := 0, int64(0)
	for err == nil && size <= most {
		var more int
		more, err = text.Read(buffer[kept:])
		piece := buffer[:kept+more]
		n += bytes.Count(piece, []byte(field))
		size += int64(more)
		kept = copy(buffer, piece[max(0, len(piece)-len(field)+1):]) // too short to be counted again
	}
	if _, err := text.Seek(begin, io.SeekStart); err != nil {
		return 0 // unreachable: it was there
	}
	return min(n, int(size/shortest))
}

// Sniff reports whether a text that begins with these bytes may be in this format: whether it is a JSON object.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(begin), []byte{'{'}) }
