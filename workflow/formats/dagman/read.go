package dagman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// Read reads the workflow of a .dag; name is the file name for errors and warnings. Other files are opened with
// opts.Open. Every error has kind Invalid and the place FILE:LINE, except that if ctx is cancelled, Read stops and
// returns the cause. Warnings are returned both with the workflow and with an error.
func Read(ctx context.Context, text io.Reader, name string, opts workflow.Options) (
	*workflow.Workflow, []workflow.Warning, error,
) {
	wf := &workflow.Workflow{Name: workflow.NameOf(name)}
	most := cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes)
	r := &reader{
		files: &files{ctx: ctx, folder: path.Dir(name), opener: opts.Open,
			line: cmp.Or(opts.MaxValue, workflow.DefaultMaxValue), most: most, left: most,
			seen: make(map[string]bool)},
		wf:       wf,
		builder:  workflow.NewBuilder(wf, opts),
		maxTasks: cmp.Or(opts.MaxTasks, workflow.DefaultMaxTasks),

		statements: statements(),
		parsed:     make(map[string]*submit.Description),
		warned:     make(map[string]bool),
	}
	r.jobs = newJobRecord(r.warnOnce)
	r.files.stack = []string{path.Base(name)}
	lines := submit.NewLines(&counted{r.files, text}, name, r.files.line)
	err := r.read(lines)
	if err == nil {
		err = context.Cause(ctx) // the graph is no longer needed
	}
	if err == nil {
		err = r.builder.Build(lines.Here())
	}
	if err != nil {
		return nil, r.builder.Warnings, complete(ctx, err, name, lines.Here())
	}
	return wf, r.builder.Warnings, nil
}

// complete adds the place and the kind to an error that lacks them. here is the current position in the file.
func complete(ctx context.Context, err error, name string, here workflow.Place) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("reading %s: %w", name, cause)
	}
	var known *corral.Error
	var tooLong *input.TooLongError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &tooLong):
		return workflow.Place{File: name}.Errorf("the workflow is %w", tooLong)
	}
	return here.Errorf("%w", err)
}

// Sniff reports whether a text with this beginning may be a .dag, i.e. whether its first line that is neither blank nor
// a comment begins with a DAGMan keyword.
func Sniff(begin []byte) bool {
	for line := range strings.Lines(string(begin)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := fields{text: line}
		_, ok := statements()[keyword(words.next())]
		return ok && words.next() != ""
	}
	return false
}

// A reader creates a workflow from a .dag and the files to which the .dag refers.
type reader struct {
	files   *files
	wf      *workflow.Workflow
	builder *workflow.Builder
	jobs    *jobRecord // state of all jobs of the workflow

	nodes    []node
	edges    [][2]int32 // pairs of nodes: parent, child
	scopes   int        // number of reads of files of nodes, including repeated reads
	said     int        // number of settings of single nodes made by ALL_NODES
	maxTasks int

	absent     int            // number of missing submit descriptions
	absentAt   workflow.Place // place of the first node with a missing description
	absentFile string

	statements map[string]obeyer
	parsed     map[string]*submit.Description // :: folder and file → the parsed description; nil: the file is missing
	warned     map[string]bool                // subjects of the warnings so far
}

// read reads the .dag and all files to which it refers, and then creates the tasks and edges of the workflow.
func (r *reader) read(lines *submit.Lines) error {
	s := r.newScope(nil, "", "")
	if err := s.read(lines); err != nil {
		return err
	}
	if err := r.addTasks(); err != nil {
		return err
	}
	return r.addEdges()
}

// warnOnce warns, unless it has already warned about the same subject.
func (r *reader) warnOnce(thing string, at workflow.Place, format string, args ...any) {
	if !r.warned[thing] && len(r.warned) < maxWarnings {
		r.warned[thing] = true
		r.builder.Warn(at, format, args...)
	}
}

// Limits on the expansion of a small file.
const (
	maxEdges    = 16 << 20 // maximum number of edges, which need a gigabyte
	maxNested   = 64       // maximum number of nested files
	maxPath     = 4096     // maximum bytes of a folder's path, or of a name with the names of its splices
	maxScopes   = 1 << 20  // maximum number of reads of files of nodes
	maxRepeated = 200_000  // maximum number of nodes and files that come from files read before
	freeBytes   = 256 << 20
	maxPerByte  = 64   // maximum bytes of job values, in addition to freeBytes, per byte of text
	maxSaid     = 8    // maximum number of settings made by ALL_NODES, per allowed task
	maxWarnings = 1000 // maximum number of warnings with different subjects; more would not be useful
)

// files opens the files to which a .dag refers. The size limit of a workflow applies to the total size of these files.
type files struct {
	ctx    context.Context
	folder string // folder of the .dag, as given by the user
	opener func(path string) (io.ReadCloser, error)
	line   int64 // maximum length of a line
	most   int64
	left   int64    // bytes of most that are not used yet
	values int64    // remaining budget of bytes for the values of jobs
	stack  []string // the files of nodes being read, from outer to inner

	seen     map[string]bool // files that have been on the stack
	repeats  int             // height of the stack at the first repeated file; 0: no file on it is repeated
	repeated int             // number of items from repeated files
}

// repeat counts an item of a repeated file, and returns an error if there are too many such items. Without this limit,
// a few lines could repeat items arbitrarily often by nesting files.
func (f *files) repeat(at workflow.Place) error {
	if f.repeats == 0 {
		return nil
	}
	if f.repeated++; f.repeated > maxRepeated {
		return at.Errorf("more than %d nodes and files come from files that are read repeatedly", maxRepeated)
	}
	return nil
}

// open opens a file whose name is relative to the folder of the .dag.
func (f *files) open(name string) (*submit.Lines, io.Closer, error) {
	if f.opener == nil {
		return nil, nil, errAbsent
	}
	c, err := f.opener(name)
	if err != nil {
		return nil, nil, err
	}
	return submit.NewLines(&counted{f, c}, f.called(name), f.line), c, nil
}

// called returns the name of a file for display, which is relative to the user's folder, like the name of the .dag.
func (f *files) called(name string) string { return submit.Join(f.folder, name) }

// A counted reader counts the bytes read towards the limit for all files.
type counted struct {
	files *files
	r     io.Reader
}

func (c *counted) Read(p []byte) (int, error) {
	if c.files.ctx.Err() != nil {
		return 0, context.Cause(c.files.ctx)
	}
	n, err := c.r.Read(p)
	if c.files.left -= int64(n); c.files.left < 0 {
		return 0, &input.TooLongError{Limit: c.files.most}
	}
	return n, err
}
