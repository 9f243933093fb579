// Package formats reads and writes workflow files without being told how. It knows each format by one line in a table:
// another format is a package beside workflow/formats/wfformat whose Read feeds a workflow.Builder, and one more line
// here.
//
// The ending of the file's name decides; a file with an unknown ending is known by its first bytes. Any file may be
// gzip-compressed. The limit in bytes holds before and after decompression, so that a small file cannot become a
// large one unnoticed.
//
// Only what people name goes through here. corrald receives every workflow as WfFormat, under the name that the user's
// file has, and therefore asks package wfformat itself.
package formats

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
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
	"github.com/corral-pilot/corral/workflow/formats/dax"
	"github.com/corral-pilot/corral/workflow/formats/makeflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// A format is one way to write a workflow down.
type format struct {
	word    string   // by which people choose it
	name    string   // that people read
	endings []string // of names of files, or whole names, in lower case
	sniff   func(begin []byte) bool
	read    func(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
		*workflow.Workflow, []workflow.Warning, error)
	write func(wf *workflow.Workflow, create Create) error // nil: it is only read
	lost  func(wf *workflow.Workflow) []string             // by write, in parts of a sentence; nil: nothing is
	parts bool                                             // write makes several files
}

// A Create makes a new file of a name without folders, for a format to write. A format may take several files, of which
// it makes that of the workflow first.
type Create func(name string) (io.WriteCloser, error)

// formats lists every format, those whose beginning is known best first.
var formats = []format{
	{"wfformat", "WfFormat 1.4 and 1.5", []string{".json"}, wfformat.Sniff, wfformat.Read,
		alone(wfformat.Write, ".json"), nil, false},
	{"dax", "DAX 2 and 3", []string{".dax", ".xml"}, dax.Sniff, dax.Read, nil, nil, false},
	{"makeflow", "classic Makeflow", []string{".makeflow", ".mf", "makeflow"}, makeflow.Sniff, makeflow.Read,
		nil, nil, false},
	{"dagman", "DAGMan with submit descriptions", []string{".dag"}, dagman.Sniff, dagman.Read,
		func(wf *workflow.Workflow, create Create) error { return dagman.Write(wf, create) }, dagman.Lost, true},
}

// Names lists the formats for people, each with the endings of its files.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, fmt.Sprintf("%s (%s)", f.name, strings.Join(f.endings, ", ")))
	}
	return names
}

// Written lists the words for the formats that Write knows.
func Written() []string {
	var words []string
	for _, f := range formats {
		if f.write != nil {
			words = append(words, f.word)
		}
	}
	return words
}

// Of returns the word for the format that the name of a file tells.
func Of(name string) (word string, ok bool) {
	if f := byName(name); f != nil {
		return f.word, true
	}
	return "", false
}

// CanWrite returns nil if Write knows the format of a word, and otherwise an error of kind Invalid.
func CanWrite(word string) error {
	for _, f := range formats {
		if f.word == word && f.write == nil {
			return corral.Errorf(corral.Invalid, "%s is read, but not written; want %s",
				f.name, strings.Join(Written(), " or "))
		}
		if f.word == word {
			return nil
		}
	}
	return corral.Errorf(corral.Invalid, "no format is called %q; want %s", word, strings.Join(Written(), " or "))
}

// IsOneFile reports whether Write makes a single file of a workflow in the format of a word.
func IsOneFile(word string) bool {
	return !slices.ContainsFunc(formats, func(f format) bool { return f.word == word && f.parts })
}

// Write writes a workflow in the format of a word, into the files that create makes. The error is that of CanWrite,
// says with another kind that the format cannot hold the workflow, or is that of create or of a file.
func Write(wf *workflow.Workflow, word string, create Create) error {
	if err := CanWrite(word); err != nil {
		return err
	}
	i := slices.IndexFunc(formats, func(f format) bool { return f.word == word })
	return formats[i].write(wf, create)
}

// Lost says, in parts of a sentence, what of a workflow the format of a word has no place for, so that Write leaves it
// out.
func Lost(wf *workflow.Workflow, word string) []string {
	i := slices.IndexFunc(formats, func(f format) bool { return f.word == word })
	if i < 0 || formats[i].lost == nil {
		return nil
	}
	return formats[i].lost(wf)
}

// alone makes a writer of a format out of one that writes a single file.
func alone(write func(io.Writer, *workflow.Workflow) error, ending string) func(*workflow.Workflow, Create) error {
	return func(wf *workflow.Workflow, create Create) error {
		f, err := create("workflow" + ending)
		if err != nil {
			return err
		}
		return errors.Join(write(f, wf), f.Close())
	}
}

// ReadFile reads the workflow in a regular file, and the files that it names, which must be regular, too. Its Dir is
// the directory of the file, absolute. Errors are as of Read; that includes a file that cannot be opened.
func ReadFile(ctx context.Context, path string, opts workflow.Options) (*workflow.Workflow, []workflow.Warning, error) {
	place := workflow.Place{File: path}
	f, err := input.Open(path)
	if err != nil {
		return nil, nil, place.Errorf("%w", errors.Unwrap(err)) // without the path, which is the place
	}
	defer f.Close()
	if opts.Open == nil {
		opts.Open = openFrom(filepath.Dir(path))
	}
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

// openFrom opens files by names from a folder.
func openFrom(folder string) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		f, err := input.Open(name)
		if err != nil {
			return nil, err // and not a reader that is a nil pointer
		}
		text, err := plain(f, innerBytes)
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return &unpackedFile{text, f}, nil
	}
}

// An unpackedFile is the text of a file that may be compressed.
type unpackedFile struct {
	io.Reader
	io.Closer
}

// Read reads a workflow; name tells its format and is what errors and warnings call it. Every error has kind Invalid
// and the place name:line, as far as there is a line, except after the end of ctx, which ends the reading: then it is
// ctx's cause. Warnings come with the workflow and with an error.
func Read(ctx context.Context, r io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	text, err := plain(input.Limit(ctx, r, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes)), bufferBytes)
	if err != nil {
		return nil, nil, workflow.Place{File: name}.Errorf("decompressing: %w", err)
	}
	begin, _ := text.Peek(sniffed) // an error shows again when the text is read
	f := choose(name, begin)
	if f == nil {
		return nil, nil, workflow.Place{File: name}.Errorf(
			"neither its name nor its beginning tells its format; Corral reads %s", strings.Join(Names(), "; "))
	}
	return f.read(ctx, text, name, opts)
}

// byteOrderMark is what some editors put before a text in UTF-8. It means nothing.
const byteOrderMark = "\uFEFF"

// sniffed is how many bytes show the format of a text: enough to pass a comment that precedes it.
const sniffed = 1 << 10

// How much is read of a file at once. Those that others name are small and many.
const (
	bufferBytes = 64 << 10
	innerBytes  = 4 << 10
)

// plain is a text, decompressed if it is compressed, without a byte order mark.
func plain(r io.Reader, buffer int) (*bufio.Reader, error) {
	text, err := decompressed(r, buffer)
	if err != nil {
		return nil, err
	}
	if mark, err := text.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark))
	}
	return text, nil
}

func decompressed(r io.Reader, buffer int) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, buffer)
	magic, err := text.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return text, nil // a file of one byte, or a reader's error, shows when it is read
	}
	unpacked, err := gzip.NewReader(text)
	return bufio.NewReaderSize(unpacked, buffer), err
}

// byName returns the format that the name of a file tells, or nil.
func byName(name string) *format {
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(name)), ".gz")
	for i := range formats {
		if slices.Contains(formats[i].endings, filepath.Ext(base)) || slices.Contains(formats[i].endings, base) {
			return &formats[i]
		}
	}
	return nil
}

// choose returns the format of a file by its name or else by its first bytes, or nil. A file in which nothing is left
// is for the first format to complain about.
func choose(name string, begin []byte) *format {
	if f := byName(name); f != nil {
		return f
	}
	for i := range formats {
		if formats[i].sniff(begin) {
			return &formats[i]
		}
	}
	if len(begin) == 0 {
		return &formats[0]
	}
	return nil
}
