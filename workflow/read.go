package workflow

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/input"
)

// ReadFile reads the workflow in a regular file, gzip-compressed or not. Its Dir is the directory of the file,
// absolute. Errors are as of Read; that includes a file that cannot be opened.
func ReadFile(ctx context.Context, path string, opts Options) (*Workflow, []Warning, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, nil, corral.ErrorAt(corral.Invalid, path, "%w", errors.Unwrap(err)) // without the path, which is the place
	}
	defer f.Close()
	wf, warnings, err := Read(ctx, f, path, opts)
	if err != nil {
		return nil, warnings, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, warnings, corral.ErrorAt(corral.Invalid, path, "%w", err)
	}
	wf.Dir = filepath.Dir(abs)
	return wf, warnings, nil
}

// Read reads a workflow in WfFormat 1.5, gzip-compressed or not; name is what errors and warnings call
// it. Every error has kind Invalid and the place name:line, as far as there is a line, except after the end of ctx,
// which ends the reading: then it is ctx's cause. Warnings come with the workflow and with an error.
func Read(ctx context.Context, r io.Reader, name string, opts Options) (*Workflow, []Warning, error) {
	limit := cmp.Or(opts.MaxBytes, DefaultMaxBytes)
	text, err := decompressed(input.Limit(ctx, r, limit))
	if err != nil {
		return nil, nil, corral.ErrorAt(corral.Invalid, name, "decompressing: %w", err)
	}
	wf := &Workflow{}
	rd := &reader{
		doc:      newDocument(input.Limit(ctx, text, limit), name, cmp.Or(opts.MaxValue, DefaultMaxValue)),
		wf:       wf,
		builder:  NewBuilder(wf, opts),
		maxTasks: cmp.Or(opts.MaxTasks, DefaultMaxTasks),
	}
	err = rd.read()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = rd.builder.Build(rd.doc.here())
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("reading %s: %w", name, cause)
	}
	if err != nil {
		return nil, rd.builder.Warnings, err
	}
	return wf, rd.builder.Warnings, nil
}

func decompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil // a file of one byte, or a reader's error, shows when it is read
	}
	return gzip.NewReader(buffered)
}
