// Package dax reads DAX, the XML format of Pegasus workflows: versions 2 and 3, and the dialect of the workflow
// generator and of the published gallery, which specifies runtimes of jobs, and sizes of files at each use.
//
// A document is an adag with jobs, the files that each job uses, and the edges, as lists of parents for each child. It
// is read element by element and never held as a whole. The sizes of the text and of each element below the adag are
// limited, as are the nesting of elements and the number of tasks. Entities are not expanded; a document type that
// declares entities is refused.
//
// The command of a job is its argument, preceded by the first path of the executable with the job's name or, if no such
// executable is declared, by the name itself. A job of the generator's dialect has no argument: it can be planned, but
// not run. The runtime of such a job is treated as measured, and the sizes of the files that it uses as the numbers of
// bytes that it read and wrote. The generator draws a size separately for each use, so the sizes of one file differ:
// the size specified by the file's writer is used or, if no job writes the file, the largest size.
//
// The reader uses these profiles: the environment, the needs (cores, memory, disk and gpus, under Pegasus's and
// HTCondor's names), the expected runtime, the label, and DAGMan's retries. It warns of everything that it ignores. It
// refuses a job that is itself a workflow (dag, dax). The package does not write DAX.
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

// Read reads a workflow in DAX; name is the file name for errors and warnings, and its last part is the workflow's name
// if the document specifies none. Every error has kind Invalid and the place name:line, or name if the error concerns
// no line, except that if ctx is cancelled, Read stops and returns the cause. Warnings are returned both with the
// workflow and with an error.
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
		err = context.Cause(ctx) // the graph is no longer needed
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

// Sniff reports whether a text with this beginning may be in this format, i.e. whether it begins like XML.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(begin), []byte{'<'}) }
