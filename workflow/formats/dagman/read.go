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

// Read reads the workflow of a .dag; name is what errors and warnings call it. The other files that it needs are opened
// by opts.Open. Every error has kind Invalid and the place FILE:LINE, except after the end of ctx, which ends the
// reading: then it is ctx's cause. Warnings come with the workflow and with an error.
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
		err = context.Cause(ctx) // nobody waits for the graph any longer
	}
	if err == nil {
		err = r.builder.Build(lines.Here())
	}
	if err != nil {
		return nil, r.builder.Warnings, complete(ctx, err, name, lines.Here())
	}
	return wf, r.builder.Warnings, nil
}

// complete gives an error its place and its kind, unless it has them. here is how far the file has been read.
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

// Sniff reports whether a text that begins with these bytes may be a .dag: whether its first line that is no comment
// begins with one of DAGMan's words.
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

// A reader makes a workflow of a .dag and the files that it names.
type reader struct {
	files   *files
	wf      *workflow.Workflow
	builder *workflow.Builder
	jobs    *jobRecord // of the whole workflow

	nodes    []node
	edges    [][2]int32 // between nodes
	scopes   int        // files that nodes were read from, each time that they were
	said     int        // things that were said of single nodes by ALL_NODES
	maxTasks int

	absent     int            // submit descriptions that are not there
	absentAt   workflow.Place // the first of them
	absentFile string

	statements map[string]obeyer
	parsed     map[string]*submit.Description // :: folder and file → what was read; nil: there is none
	warned     map[string]bool                // of what a warning was given already
}

// read reads everything, and then makes the tasks and their order.
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

// warnOnce warns, unless it was warned of the same thing already.
func (r *reader) warnOnce(thing string, at workflow.Place, format string, args ...any) {
	if !r.warned[thing] && len(r.warned) < maxWarnings {
		r.warned[thing] = true
		r.builder.Warn(at, format, args...)
	}
}

// Limits of what a small file could make large.
const (
	maxEdges    = 16 << 20 // as many take a gigabyte
	maxNested   = 64       // files that are read within each other
	maxPath     = 4096     // bytes of a folder's path, or of a name with those of its splices
	maxScopes   = 1 << 20  // times that a file of nodes is read
	maxRepeated = 200_000  // nodes and files that come of files which were read before
	freeBytes   = 256 << 20
	maxPerByte  = 64   // bytes of the values of jobs, beyond freeBytes, for each byte of text
	maxSaid     = 8    // things that ALL_NODES says of nodes, for each task that there may be
	maxWarnings = 1000 // of different things; nobody reads more
)

// files are those that a .dag names. All of them together have as many bytes as one workflow may have.
type files struct {
	ctx    context.Context
	folder string // that of the .dag, as the user named it
	opener func(path string) (io.ReadCloser, error)
	line   int64 // how long a line may be
	most   int64
	left   int64    // of most
	values int64    // how many bytes may still be charged for the values of jobs
	stack  []string // the files of nodes that are being read, each within the one before

	seen     map[string]bool // the files that were on the stack
	repeats  int             // how high the stack was with the first of them that was there before; 0: none was
	repeated int             // things that came of them
}

// repeat counts a thing that a file says again. A few lines can say the same as often as they like, file within file.
func (f *files) repeat(at workflow.Place) error {
	if f.repeats == 0 {
		return nil
	}
	if f.repeated++; f.repeated > maxRepeated {
		return at.Errorf("more than %d nodes and files come of files that are read again", maxRepeated)
	}
	return nil
}

// open opens a file; name is relative to the folder of the .dag.
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

// called is what people call a file: by a name from where they are, as they named the .dag.
func (f *files) called(name string) string { return submit.Join(f.folder, name) }

// A counted reader counts what it reads of all that may be read.
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
