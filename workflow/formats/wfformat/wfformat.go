// Package wfformat reads WfFormat 1.4 and 1.5, the JSON format of WfCommons, and writes version 1.5. One file contains
// a workflow's structure (workflow.specification), and its commands, cpus and measured runtimes (workflow.execution);
// in 1.4 each task contains all its data. Published traces use WfFormat, Corral stores its runs in it, and corrald
// accepts no other format: the client converts workflows in other formats.
//
// A document is read value by value and never held as a whole. The sizes of the text, of each value in it and of
// whitespace are limited, as is the number of tasks. So reading a file of two gigabytes requires only the memory for
// its tasks, and a malicious file is refused before it requires more. Each error and each warning names its line, and
// also the column if the text is not JSON.
//
// A reader reads the fields and passes them to a workflow.Builder, which performs the checks common to all formats.
// This package handles the peculiarities of WfFormat: each edge occurs twice, in lists of parents and of children,
// which may disagree; a task is described in two places, which are joined by the task's id; and many files contain
// unknown fields, of which the reader warns. In Corral's own extension an unknown field is an error.
//
// WfFormat lacks some of the data that a run needs. The x-corral object of a specification task contains these data;
// docs/x-corral.schema.json describes the object. The reader drops the measured energy and power, and a task's
// priority, because the order of a run follows from the graph.
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

// Read reads a workflow in WfFormat 1.4 or 1.5; name is the file name for errors and warnings. Every error has kind
// Invalid and the place name:line, or name if the error concerns no line, except that if ctx is cancelled, Read stops
// and returns the cause. Warnings are returned both with the workflow and with an error.
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
		err = context.Cause(ctx) // the graph is no longer needed
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

// countTasks estimates the number of tasks in a text from the fields that only tasks contain, and restores the
// position. The number is useful because a growing list of a million tasks temporarily needs twice its memory; scanning
// the text takes only 1 % of the time needed to read it. If the text cannot be scanned, countTasks returns 0.
func countTasks(text io.ReadSeeker, most int64) (n int) {
	begin, err := text.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0 // for example a pipe
	}
	const field, shortest = `"parents"`, 64 // bytes of a task, including its execution
	buffer := make([]byte, 64<<10)
	kept, size := 0, int64(0)
	for err == nil && size <= most {
		var more int
		more, err = text.Read(buffer[kept:])
		piece := buffer[:kept+more]
		n += bytes.Count(piece, []byte(field))
		size += int64(more)
		kept = copy(buffer, piece[max(0, len(piece)-len(field)+1):]) // too short for a counted field
	}
	if _, err := text.Seek(begin, io.SeekStart); err != nil {
		return 0 // unreachable: the position was valid before
	}
	return min(n, int(size/shortest))
}

// Sniff reports whether a text with this beginning may be in this format, i.e. whether it begins like a JSON object.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(begin), []byte{'{'}) }
