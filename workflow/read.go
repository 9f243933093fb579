package workflow

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/input"
)

// DefaultMaxBytes is the size limit of a workflow file, before and after decompression. A task takes 500 bytes as Write
// writes it, and 2300 in the published instances, which are indented: so 800,000 tasks fit either way.
const DefaultMaxBytes = 2 << 30

// DefaultMaxValue is the size limit of one value in a file, such as a task: the whole of it is in memory at once, several
// times. A task with 800,000 parents, and a file from each, takes some 50 MB.
const DefaultMaxValue = 64 << 20

// DefaultMaxTasks is how many tasks a workflow may have: in memory a task takes far more than its shortest text, which
// the size of the file bounds.
const DefaultMaxTasks = 2_000_000

// Options say how a file is read. The zero value is right for most.
type Options struct {
	Strict   bool  // refuse what is otherwise a warning
	MaxBytes int64 // size limit before and after decompression; 0: DefaultMaxBytes
	MaxValue int64 // size limit of a value; 0: DefaultMaxValue
	MaxTasks int   // 0: DefaultMaxTasks
}

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
	limit := orDefault(opts.MaxBytes, DefaultMaxBytes)
	text, err := decompressed(input.Limit(ctx, r, limit))
	if err != nil {
		return nil, nil, corral.ErrorAt(corral.Invalid, name, "decompressing: %w", err)
	}
	document := newDocument(input.Limit(ctx, text, limit), name, orDefault(opts.MaxValue, DefaultMaxValue))
	rd := &reader{document: document, strings: make(map[string]string), wf: &Workflow{}, maxTasks: orDefault(opts.MaxTasks, DefaultMaxTasks)}
	if err = rd.file(); err == nil {
		err = rd.complete(ctx)
	}
	if err == nil && opts.Strict && len(rd.warnings) > 0 {
		err = corral.ErrorAt(corral.Invalid, rd.warnings[0].Place, "%s", rd.warnings[0].Message)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("reading %s: %w", name, cause)
	}
	if err != nil {
		return nil, rd.warnings, err
	}
	return rd.wf, rd.warnings, nil
}

func orDefault[N int | int64](n, otherwise N) N {
	if n <= 0 {
		return otherwise
	}
	return n
}

func decompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil // a file of one byte, or a reader's error, shows when it is read
	}
	return gzip.NewReader(buffered)
}

// A reader is one reading of a file: what was read, before it is put together by complete.
type reader struct {
	*document
	wf       *Workflow
	maxTasks int
	warnings []Warning
	strings  map[string]string // one copy of each id and name, which occur many times

	version  string
	links    []links    // of each task
	runs     []execTask // of the execution, in its order
	runLines []int32
}

// links are a task's relatives as the file names them.
type links struct{ parents, children []string }

func (r *reader) warn(line int, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{fmt.Sprintf("%s:%d", r.name, line), fmt.Sprintf(format, args...)})
}

// at is an error about a line that was read before.
func (r *reader) at(line int32, format string, args ...any) error {
	return corral.ErrorAt(corral.Invalid, fmt.Sprintf("%s:%d", r.name, line), format, args...)
}

// file reads the whole file.
func (r *reader) file() error {
	if err := r.object("", r.topField); err != nil {
		return err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		if err != nil {
			return r.broken(err)
		}
		return r.errorf("there is something after the end of the document")
	}
	for _, u := range r.unknown {
		more := ""
		if u.count > 1 {
			more = fmt.Sprintf(" (%d times)", u.count)
		}
		r.warn(u.line, "unknown field %s is ignored%s", u.path, more)
	}
	return r.checkVersion()
}

func (r *reader) topField(key string) error {
	switch key {
	case "name":
		return r.text(key, &r.wf.Name)
	case "description":
		return r.text(key, &r.wf.Description)
	case "createdAt":
		var s string
		line, err := read(r.document, key, &s)
		r.wf.CreatedAt = r.time(key, s, line)
		return err
	case "schemaVersion":
		if err := r.text(key, &r.version); err != nil {
			return err
		}
		return r.checkVersion()
	case "author":
		_, err := read(r.document, key, &r.wf.Author)
		return err
	case "runtimeSystem":
		_, err := read(r.document, key, &r.wf.System)
		return err
	case "workflow":
		return r.object(key, r.workflowField)
	}
	return errUnknown
}

// checkVersion is called as soon as the version is known, because a file of another version makes no
// sense as 1.5, and at the end, in case there was none.
func (r *reader) checkVersion() error {
	if r.version != "1.5" {
		return r.errorf("schemaVersion is %q; only WfFormat 1.5 is read", r.version)
	}
	return nil
}

func (r *reader) workflowField(key string) error {
	switch key {
	case "specification":
		return r.object("workflow.specification", r.specificationField)
	case "execution":
		return r.object("workflow.execution", r.executionField)
	}
	return errUnknown
}

func (r *reader) specificationField(key string) error {
	path := "workflow.specification." + key
	switch key {
	case "tasks":
		return r.array(path, func() error { return r.task(path + "[]") })
	case "files":
		r.wf.FileSizes = make(map[string]int64)
		return r.array(path, func() error { return r.dataFile(path + "[]") })
	}
	return errUnknown
}

func (r *reader) executionField(key string) error {
	path := "workflow.execution." + key
	switch key {
	case "makespanInSeconds":
		_, err := read(r.document, path, (*seconds)(&r.wf.Makespan))
		return err
	case "executedAt":
		var s string
		line, err := read(r.document, path, &s)
		r.wf.ExecutedAt = r.time(path, s, line)
		return err
	case "tasks":
		return r.array(path, func() error { return r.execution(path + "[]") })
	case "machines":
		_, err := read(r.document, path, &r.wf.Machines)
		return err
	}
	return errUnknown
}

func (r *reader) task(path string) error {
	var s specTask
	line, err := read(r.document, path, &s)
	if err != nil {
		return err
	}
	t := Task{
		ID:      r.intern(s.ID),
		Name:    r.intern(or(s.Name, s.ID)),
		Inputs:  r.internSet(s.Inputs),
		Outputs: r.internSet(s.Outputs),
		CPUs:    1,
	}
	if t.ID == "" {
		return r.at(int32(line), "%s: id is missing", path)
	}
	if len(r.wf.Tasks) == r.maxTasks {
		return r.at(int32(line), "the workflow has more than %d tasks", r.maxTasks)
	}
	if err := t.extend(s.Corral); err != nil {
		return r.at(int32(line), "task %q: %s: %w", t.ID, extensionKey, err)
	}
	r.wf.Tasks = append(r.wf.Tasks, t)
	r.wf.source.lines = append(r.wf.source.lines, int32(line))
	r.links = append(r.links, links{r.internSet(s.Parents), r.internSet(s.Children)})
	return nil
}

func (r *reader) dataFile(path string) error {
	var f dataFile
	line, err := read(r.document, path, &f)
	if err != nil {
		return err
	}
	if f.ID == "" {
		return r.at(int32(line), "%s: id is missing", path)
	}
	if size, ok := r.wf.FileSizes[f.ID]; ok && size != int64(f.Size) {
		return r.at(int32(line), "file %q is listed twice, with %d and %d bytes", f.ID, size, f.Size)
	}
	r.wf.FileSizes[r.intern(f.ID)] = int64(f.Size)
	return nil
}

func (r *reader) execution(path string) error {
	var e execTask
	line, err := read(r.document, path, &e)
	if err != nil {
		return err
	}
	if len(r.runs) == r.maxTasks {
		return r.at(int32(line), "the workflow has executions of more than %d tasks", r.maxTasks)
	}
	e.ID = r.intern(e.ID)
	if e.Command != nil {
		e.Command.Program = r.intern(e.Command.Program)
		for i, a := range e.Command.Arguments {
			e.Command.Arguments[i] = r.intern(a)
		}
	}
	r.runs = append(r.runs, e)
	r.runLines = append(r.runLines, int32(line))
	return nil
}

func (r *reader) text(path string, v *string) error {
	_, err := read(r.document, path, v)
	return err
}

func (r *reader) time(path, s string, line int) time.Time {
	t, ok := parseTime(s)
	if !ok {
		r.warn(line, "%s: %q is not a time that is understood", path, s)
	}
	return t
}

// intern returns the one copy of s.
func (r *reader) intern(s string) string {
	if one, ok := r.strings[s]; ok {
		return one
	}
	r.strings[s] = s
	return s
}

// internSet is list without repetitions, which say nothing in these lists.
func (r *reader) internSet(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	set := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			set = append(set, r.intern(s))
		}
	}
	return set
}
