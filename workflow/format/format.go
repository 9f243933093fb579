// Package format reads a workflow file without being told its format. It knows each format by one line in a table:
// another format is a package beside workflow/wfformat whose Read feeds a workflow.Builder, and one more line here.
//
// The extension of the file's name decides; a file with an unknown extension is known by its first bytes. Any file
// may be gzip-compressed. The limit in bytes holds before and after decompression, so that a small file cannot become a
// large one unnoticed.
//
// Only what people name goes through here. corrald receives every workflow as WfFormat, under the name that the user's
// file has, and therefore asks package wfformat itself.
package format

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/internal/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/wfformat"
)

// A format is one way to write a workflow down.
type format struct {
	name       string
	extensions []string                // of file names, in lower case
	sniff      func(begin []byte) bool // reports whether a text that begins so may be in this format
	read       func(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
		*workflow.Workflow, []workflow.Warning, error)
}

// formats lists every format. The reader of the first one says what is wrong with a text that looks like none of them.
var formats = []format{
	{"WfFormat 1.5 JSON", []string{".json"}, wfformat.Sniff, wfformat.Read},
}

// Names lists the formats for people.
func Names() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// ReadFile reads the workflow in a regular file. Its Dir is the directory of the file, absolute. Errors are as of Read;
// that includes a file that cannot be opened.
func ReadFile(ctx context.Context, path string, opts workflow.Options) (*workflow.Workflow, []workflow.Warning, error) {
	place := workflow.Place{File: path}
	f, err := input.Open(path)
	if err != nil {
		return nil, nil, place.Errorf("%w", errors.Unwrap(err)) // without the path, which is the place
	}
	defer f.Close()
	wf, warnings, err := Read(ctx, f, path, opts)
	if err != nil {
		return nil, warnings, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, warnings, place.Errorf("%w", err)
	}
	wf.Dir = filepath.Dir(abs)
	return wf, warnings, nil
}

// Read reads a workflow; name tells its format and is what errors and warnings call it. Every error has kind Invalid
// and the place name:line, as far as there is a line, except after the end of ctx, which ends the reading: then it is
// ctx's cause. Warnings come with the workflow and with an error.
func Read(ctx context.Context, r io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	text, err := decompressed(input.Limit(ctx, r, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes)))
	if err != nil {
		return nil, nil, workflow.Place{File: name}.Errorf("decompressing: %w", err)
	}
	begin, _ := text.Peek(sniffed) // an error shows again when the text is read
	return choose(name, begin).read(ctx, text, name, opts)
}

// sniffed is how many bytes show the format of a text: enough to pass a comment that precedes it.
const sniffed = 1 << 10

const bufferBytes = 64 << 10

func decompressed(r io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, bufferBytes)
	magic, err := text.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return text, nil // a file of one byte, or a reader's error, shows when it is read
	}
	unpacked, err := gzip.NewReader(text)
	return bufio.NewReaderSize(unpacked, bufferBytes), err
}

// choose returns the format of a file by its name or else by its first bytes.
func choose(name string, begin []byte) format {
	extension := strings.ToLower(filepath.Ext(strings.TrimSuffix(name, ".gz")))
	for _, f := range formats {
		if slices.Contains(f.extensions, extension) {
			return f
		}
	}
	for _, f := range formats {
		if f.sniff(begin) {
			return f
		}
	}
	return formats[0]
}
