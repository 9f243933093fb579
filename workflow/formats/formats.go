// Package formats reads and writes workflow files, and detects their format. Its table contains one line for each
// format: to add a format, add a package beside workflow/formats/wfformat whose Read function uses a workflow.Builder,
// and a line in the table.
//
// ReadFile reads the workflow in a file, Read the workflow in a stream, and Write writes a workflow. A format is
// selected by its word, which is the name of its package: wfformat, dax, makeflow or dagman. All formats can be read;
// Written lists those that can be written.
//
// The format is determined by the file name's extension or, if the extension is unknown, by the first bytes. Any file
// may be gzip-compressed. The size limit applies before and after decompression, so that a small file cannot expand
// beyond the limit unnoticed.
//
// This package is used only to read files that users name. corrald receives every workflow as WfFormat, under the name
// of the user's file, and therefore uses package wfformat directly.
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
	word    string   // word by which users select the format
	name    string   // name for display
	endings []string // lower-case extensions of file names, or whole names
	sniff   func(begin []byte) bool
	read    func(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
		*workflow.Workflow, []workflow.Warning, error)
	write func(wf *workflow.Workflow, create Create) error // nil: read only
	lost  func(wf *workflow.Workflow) []string             // describes the data that write omits; nil: it omits none
	parts bool                                             // write creates several files
}

// A Create creates a new file; the name contains no folders. A format may create several files, the first of which
// contains the workflow.
type Create func(name string) (io.WriteCloser, error)

// formats lists all formats, in descending order of how distinctive the beginnings of their files are.
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

// Of returns the word for the format that a file's name implies; ok is false if the name implies none.
func Of(name string) (word string, ok bool) {
	if f := byName(name); f != nil {
		return f.word, true
	}
	return "", false
}

// CanWrite returns nil if Write supports the format with the given word, and an error of kind Invalid otherwise.
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

// IsOneFile reports whether a workflow in the format with the given word is a single file.
func IsOneFile(word string) bool {
	return !slices.ContainsFunc(formats, func(f format) bool { return f.word == word && f.parts })
}

// Write writes a workflow in the format with the given word, to files created by create. The error is that of CanWrite,
// an error of another kind if the format cannot represent the workflow, or an error of create or of a file.
func Write(wf *workflow.Workflow, word string, create Create) error {
	if err := CanWrite(word); err != nil {
		return err
	}
	i := slices.IndexFunc(formats, func(f format) bool { return f.word == word })
	return formats[i].write(wf, create)
}

// Lost describes, in parts of a sentence, the data of a workflow that Write omits because the format with the given
// word cannot represent it.
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

// ReadFile reads the workflow in a regular file, and the files to which that file refers, which must also be regular.
// The workflow's Dir is the absolute path of the file's directory. Errors are as for Read, including errors for files
// that cannot be opened.
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
			return nil, err // a nil pointer would not be a nil reader
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
// Invalid and the place name:line, or name if the error concerns no line, except that if ctx is cancelled, Read stops
// and returns the cause. Warnings are returned both with the workflow and with an error.
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

// byteOrderMark is a character that some editors add at the beginning of a UTF-8 text. It has no meaning.
const byteOrderMark = "\uFEFF"

// sniffed is the number of bytes examined to detect the format of a text: enough to get past a leading comment.
const sniffed = 1 << 10

// The buffer sizes for reading. innerBytes is for files to which other files refer, because such files are small and
// numerous.
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
		return text, nil // a shorter file, or a reader's error, is handled when the text is read
	}
	unpacked, err := gzip.NewReader(text)
	return bufio.NewReaderSize(unpacked, buffer), err
}

// byName returns the format that the name of a file implies, or nil if the name implies none.
func byName(name string) *format {
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(name)), ".gz")
	for i := range formats {
		if slices.Contains(formats[i].endings, filepath.Ext(base)) || slices.Contains(formats[i].endings, base) {
			return &formats[i]
		}
	}
	return nil
}

// choose returns the format of a file, which is determined by the file's name or, failing that, by its first bytes; it
// returns nil if neither shows the format. For an empty file it returns the first format, whose reader reports the
// error.
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
