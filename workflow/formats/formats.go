// Package formats reads and writes workflow files, and detects their format. Its table has one line for each format: to
// add a format, add a package beside workflow/formats/wfformat whose Read feeds a workflow.Builder, and a line here.
//
// The file name's extension determines the format; for an unknown extension the first bytes do. Any file may be
// gzip-compressed. The size limit applies before and after decompression, so that a small file cannot expand beyond it
// unnoticed.
//
// Only files named by users are read with this package. corrald receives every workflow as WfFormat, under the name of
// the user's file, and therefore uses package wfformat directly.
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

// A format is one file format of workflows.
type format struct {
	word    string   // by which users select it
	name    string   // for display
	endings []string // lower-case extensions of file names, or whole names
	sniff   func(begin []byte) bool
	read    func(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
		*workflow.Workflow, []workflow.Warning, error)
	write func(wf *workflow.Workflow, create Create) error // nil: read only
	lost  func(wf *workflow.Workflow) []string             // the parts that write omits, for a sentence; nil: none
	parts bool                                             // write makes several files
}

// A Create creates a new file with a name without folders. A format may create several files, of which the workflow's
// is the first.
type Create func(name string) (io.WriteCloser, error)

// formats lists every format, those with the most distinctive beginning first.
var formats = []format{
	{"wfformat", "WfFormat 1.4 and 1.5", []string{".json"}, wfformat.Sniff, wfformat.Read,
		alone(wfformat.Write, ".json"), nil, false},
	{"dax", "DAX 2 and 3", []string{".dax", ".xml"}, dax.Sniff, dax.Read, nil, nil, false},
	{"makeflow", "classic Makeflow", []string{".makeflow", ".mf", "makeflow"}, makeflow.Sniff, makeflow.Read,
		nil, nil, false},
	{"dagman", "DAGMan with submit descriptions", []string{".dag"}, dagman.Sniff, dagman.Read,
		func(wf *workflow.Workflow, create Create) error { return dagman.Write(wf, create) }, dagman.Lost, true},
}

// Names lists the formats for display, each with its file name extensions.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, fmt.Sprintf("%s (%s)", f.name, strings.Join(f.endings, ", ")))
	}
	return names
}

// Written lists the words for the formats that Write supports.
func Written() []string {
	var words []string
	for _, f := range formats {
		if f.write != nil {
			words = append(words, f.word)
		}
	}
	return words
}

// Of returns the word for the format implied by a file's name.
func Of(name string) (word string, ok bool) {
	if f := byName(name); f != nil {
		return f.word, true
	}
	return "", false
}

// CanWrite returns nil if Write supports the format of a word, otherwise an error of kind Invalid.
func CanWrite(word string) error {
	for _, f := range formats {
		if f.word == word && f.write == nil {
			return corral.Errorf(corral.Invalid, "%s can be read but not written; use %s",
				f.name, strings.Join(Written(), " or "))
		}
		if f.word == word {
			return nil
		}
	}
	return corral.Errorf(corral.Invalid, "unknown format %q; use %s", word, strings.Join(Written(), " or "))
}

// IsOneFile reports whether the format of a word consists of a single file.
func IsOneFile(word string) bool {
	return !slices.ContainsFunc(formats, func(f format) bool { return f.word == word && f.parts })
}

// Write writes a workflow in the format of a word, into files made by create. The error is that of CanWrite, an error
// of another kind if the format cannot represent the workflow, or an error of create or of a file.
func Write(wf *workflow.Workflow, word string, create Create) error {
	if err := CanWrite(word); err != nil {
		return err
	}
	i := slices.IndexFunc(formats, func(f format) bool { return f.word == word })
	return formats[i].write(wf, create)
}

// Lost describes, in parts of a sentence, the data of a workflow that the format of a word cannot represent, so that
// Write omits it.
func Lost(wf *workflow.Workflow, word string) []string {
	i := slices.IndexFunc(formats, func(f format) bool { return f.word == word })
	if i < 0 || formats[i].lost == nil {
		return nil
	}
	return formats[i].lost(wf)
}

// alone adapts a function that writes a single file.
func alone(write func(io.Writer, *workflow.Workflow) error, ending string) func(*workflow.Workflow, Create) error {
	return func(wf *workflow.Workflow, create Create) error {
		f, err := create("workflow" + ending)
		if err != nil {
			return err
		}
		return errors.Join(write(f, wf), f.Close())
	}
}

// ReadFile reads the workflow in a regular file, and the files to which it refers, which must also be regular. Its Dir
// is the absolute directory of the file. Errors are as in Read, including those for files that cannot be opened.
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

// openFrom returns a function that opens files by their names relative to a folder.
func openFrom(folder string) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		f, err := input.Open(name)
		if err != nil {
			return nil, err // not a reader that is a nil pointer
		}
		text, err := plain(f, innerBytes)
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return &unpackedFile{text, f}, nil
	}
}

// An unpackedFile is the decompressed text of a file.
type unpackedFile struct {
	io.Reader
	io.Closer
}

// Read reads a workflow; name determines its format and is the file name for errors and warnings. Every error has kind
// Invalid and the place name:line, with the line if there is one, except that a cancelled ctx stops the reading with
// its cause. Warnings are returned with the workflow and with an error.
func Read(ctx context.Context, r io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	text, err := plain(input.Limit(ctx, r, cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes)), bufferBytes)
	if err != nil {
		return nil, nil, workflow.Place{File: name}.Errorf("decompressing: %w", err)
	}
	begin, _ := text.Peek(sniffed) // an error is reported when the text is read
	f := choose(name, begin)
	if f == nil {
		return nil, nil, workflow.Place{File: name}.Errorf(
			"neither its name nor its contents show its format; Corral reads %s", strings.Join(Names(), "; "))
	}
	return f.read(ctx, text, name, opts)
}

// byteOrderMark is added by some editors to the beginning of a UTF-8 text. It has no meaning.
const byteOrderMark = "\uFEFF"

// sniffed is the number of bytes from which the format is detected: enough to skip a comment at the beginning.
const sniffed = 1 << 10

// The buffer sizes for reading. Files to which others refer are small and numerous.
const (
	bufferBytes = 64 << 10
	innerBytes  = 4 << 10
)

// plain returns a text, decompressed if necessary, without a byte order mark.
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
		return text, nil // a file of one byte, or a reader's error, is handled when it is read
	}
	unpacked, err := gzip.NewReader(text)
	return bufio.NewReaderSize(unpacked, buffer), err
}

// byName returns the format implied by the name of a file, or nil.
func byName(name string) *format {
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(name)), ".gz")
	for i := range formats {
		if slices.Contains(formats[i].endings, filepath.Ext(base)) || slices.Contains(formats[i].endings, base) {
			return &formats[i]
		}
	}
	return nil
}

// choose returns the format of a file by its name or else by its first bytes, or nil. An empty file is passed to the
// first format, which reports the error.
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
