// Package dax reads DAX, the XML in which Pegasus workflows are described: versions 2 and 3, and the dialect of the
// workflow generator and of the published gallery, whose jobs have a runtime and whose uses of files have sizes.
//
// A document is an adag with jobs, the files that each job uses, and the edges, as lists of parents by child. It is
// read element by element and never held as a whole. What may be large is bounded: the text, each element below the
// adag, how deep elements nest, and the number of tasks. Entities are not expanded; a document type that declares any
// is refused.
//
// What a job runs is its argument, behind the first path that an executable of its name has, or else behind the name
// itself. A job of the generator's dialect has no argument: it can be planned, but not run. Its runtime counts as
// measured, and the sizes of its uses as the bytes that it read and wrote. The generator draws these for each use, so
// they differ for one file: the file has the size that its writer gives, or else the largest.
//
// Of profiles the reader takes the environment, the needs (cores, memory, disk and gpus, by Pegasus's and by
// HTCondor's names), the expected runtime, and DAGMan's retries. It warns of what it leaves out. A job that is a
// workflow of its own (dag, dax) is refused.
package dax

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// Read reads a workflow in DAX; name is what errors and warnings call it, and its last part is the workflow's name if
// the document gives none. Every error has kind Invalid and the place name:line, as far as there is a line, except
// after the end of ctx, which ends the reading: then it is ctx's cause. Warnings come with the workflow and with an
// error.
func Read(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	wf := &workflow.Workflow{Name: workflow.NameOf(name)}
	limited := input.Limit(ctx, text, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes))
	doc := newDocument(limited, name, cmp.Or(opts.MaxValue, workflow.DefaultMaxValue))
	r := &reader{
		doc: doc, wf: wf, builder: workflow.NewBuilder(wf, opts),
		programs: make(map[executable]string), without: make(map[executable][]int32), ignored: make(map[string]int),
	}
	err := r.read()
	if err == nil {
		err = context.Cause(ctx) // nobody waits for the graph any longer
	}
	if err == nil {
		err = r.builder.Build(doc.here())
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("reading %s: %w", name, cause)
	}
	if err != nil {
		return nil, r.builder.Warnings, err
	}
	return wf, r.builder.Warnings, nil
}

// Sniff reports whether a text that begins with these bytes may be in this format: whether it is XML.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(begin), []byte{'<'}) }
