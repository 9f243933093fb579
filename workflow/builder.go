package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A Builder builds a workflow from the contents of a file, or from a program's calls. The caller itself sets the fields
// that describe the workflow (its name, author, past execution), but adds tasks, edges and files through the Builder,
// in any order: an edge may name a task that is added later. Build then resolves the names, creates the graph and
// completes the workflow.
//
// The Builder performs all the checks that do not depend on the format, so that the same errors are reported in the
// same words for every format: a missing or duplicate id, a parent or child that does not exist, a file with two sizes,
// a cycle, no task, no name. The caller passes the place of each item, and the errors name that place. After an error
// the Builder must no longer be used.
//
// A file with two writers causes only a warning: published traces contain such files, and the structure and runtimes of
// these traces are good for planning. Only a run depends on which task writes the file; see Runnable.
type Builder struct {
	Warnings []Warning // in the order of detection

	// FileOrder means that in this format tasks are ordered by files alone. Otherwise the Builder warns of a task that
	// reads a file but is not ordered after the task that writes it.
	FileOrder bool

	wf       *Workflow
	strict   bool
	maxTasks int

	texts   symbols          // all ids and words, many of which occur in many tasks
	tasks   []int32          // :: number of an id → index of the task with this id, plus 1; 0 or missing: none
	writers []int32          // :: number of a file → index of the first task that writes it, plus 1; 0 or missing: none
	also    map[string][]int // :: file id → the other tasks that write it
	edges   [][]edge         // in pieces, because a growing slice temporarily needs twice its memory
	given   int              // number of edges
	files   []string         // files in which edges were found
}

// An edge contains numbers instead of ids and places, to save memory: a task may have as many edges as there are tasks.
type edge struct {
	parent, child int32 // numbers of their ids
	file, line    int32 // its place
}

// edgesPiece is the number of edges in a piece of the list.
const edgesPiece = 1 << 12

// NewBuilder returns a Builder that completes wf. It uses only the options Strict and MaxTasks.
func NewBuilder(wf *Workflow, opts Options) *Builder {
	return &Builder{
		wf: wf, strict: opts.Strict, maxTasks: cmp.Or(opts.MaxTasks, DefaultMaxTasks),
		also: make(map[string][]int),
	}
}

// Add adds a task. It drops repetitions in the lists of files, and sets defaults: the name defaults to the id, and the
// task needs one cpu. Until Build the caller may still change the task, but not its id and its files.
func (b *Builder) Add(t Task, at Place) error {
	i := len(b.wf.Tasks)
	if t.ID == "" {
		return at.Errorf("the task has no id")
	}
	if i == b.maxTasks {
		return at.Errorf("the workflow has more than %d tasks", b.maxTasks)
	}
	n := b.texts.number(t.ID)
	if other := at32(b.tasks, n); other != 0 {
		return at.Errorf("task %q: another task has the same id (%s)", t.ID, b.wf.Place(int(other-1)))
	}
	b.tasks = with(b.tasks, n, int32(i)+1)
	t.ID = b.texts.of(n)
	t.Name, t.CPUs = cmp.Or(b.Intern(t.Name), t.ID), cmp.Or(t.CPUs, 1)
	t.Inputs, t.Outputs = b.set(t.Inputs), b.set(t.Outputs)
	for _, f := range t.Outputs {
		if _, ok := b.writer(f); ok {
			b.also[f] = append(b.also[f], i)
			continue
		}
		b.writers = with(b.writers, b.texts.number(f), int32(i)+1)
	}
	b.wf.Tasks = append(b.wf.Tasks, t)
	b.wf.places = append(b.wf.places, at)
	return nil
}

// Also adds another id by which edges may refer to the task that was added last. It fails if another task has that id.
func (b *Builder) Also(id string, at Place) error {
	i := len(b.wf.Tasks) - 1
	n := b.texts.number(id)
	if other := int(at32(b.tasks, n)) - 1; other >= 0 && other != i {
		return at.Errorf("task %q: another task has the id %q (%s)", b.wf.Tasks[i].ID, id, b.wf.Place(other))
	}
	b.tasks = with(b.tasks, n, int32(i)+1)
	return nil
}

// Grow reserves space for n more tasks.
func (b *Builder) Grow(n int) {
	b.wf.Tasks = slices.Grow(b.wf.Tasks, n)
	b.wf.places = slices.Grow(b.wf.places, n)
}

// Index returns the index of the task with the given id; ok is false if no such task has been added so far.
func (b *Builder) Index(id string) (i int, ok bool) {
	return b.texts.task(b.tasks, id)
}

// writer returns the index of the first task that writes a file; ok is false if no task writes it.
func (b *Builder) writer(file string) (i int, ok bool) { return b.texts.task(b.writers, file) }

// Edge makes child start after parent. Repeated edges are ignored.
func (b *Builder) Edge(parent, child string, at Place) {
	if n := len(b.files); n == 0 || b.files[n-1] != at.File {
		b.files = append(b.files, at.File)
	}
	if b.given%edgesPiece == 0 {
		b.edges = append(b.edges, make([]edge, 0, edgesPiece))
	}
	last := &b.edges[b.given/edgesPiece]
	*last = append(*last, edge{
		b.texts.number(parent), b.texts.number(child), int32(len(b.files) - 1), int32(at.Line),
	})
	b.given++
}

// File sets the size of a file.
func (b *Builder) File(id string, bytes int64, at Place) error {
	if id == "" {
		return at.Errorf("the file has no id")
	}
	if size, ok := b.wf.FileSizes[id]; ok && size != bytes {
		return at.Errorf("file %q is listed with two sizes, %d and %d bytes", id, size, bytes)
	}
	if b.wf.FileSizes == nil {
		b.wf.FileSizes = make(map[string]int64)
	}
	b.wf.FileSizes[b.Intern(id)] = bytes
	return nil
}

// Warn adds a warning. With Options.Strict, Build turns the first warning into an error. Texts in args are shortened
// with Short.
func (b *Builder) Warn(at Place, format string, args ...any) {
	shorten(args)
	b.Warnings = append(b.Warnings, Warning{at, fmt.Sprintf(format, args...)})
}

// WarnFor adds a warning; more is the number of other warnings of the same kind that it represents.
func (b *Builder) WarnFor(w Warning, more int) {
	w.Message += AndMore(more)
	b.Warnings = append(b.Warnings, w)
}

// Intern returns the shared copy of s. Add and File already intern names and files.
func (b *Builder) Intern(s string) string {
	return b.texts.of(b.texts.number(s))
}

// set returns list without repetitions, because in lists of files repetitions have no meaning.
func (b *Builder) set(list []string) []string {
	set := slices.Grow([]string(nil), len(list))
	var seen map[string]bool
	if len(list) > fewFiles {
		seen = make(map[string]bool, len(list))
	}
	for _, s := range list {
		if seen[s] || seen == nil && slices.Contains(set, s) {
			continue
		}
		if seen != nil {
			seen[s] = true
		}
		set = append(set, b.Intern(s))
	}
	if len(set) <= cap(set)/2 {
		return slices.Clone(set) // set is stored, so the space for the repetitions is freed
	}
	return set
}

// fewFiles is the maximum number of files for which set compares all pairs, which is then faster than a map.
const fewFiles = 16

// Edges returns the edges as pairs of task indices {parent, child}, in their original order. It fails if an edge names
// a task that was not added, so it must be called after all tasks have been added.
func (b *Builder) Edges() ([][2]int, error) {
	pairs := make([][2]int, b.given)
	for k := range pairs {
		e := &b.edges[k/edgesPiece][k%edgesPiece]
		parent, child := at32(b.tasks, e.parent), at32(b.tasks, e.child)
		at := Place{b.files[e.file], int(e.line)}
		if parent == 0 {
			return nil, at.Errorf("task %q: its parent %q does not exist", b.texts.of(e.child), b.texts.of(e.parent))
		}
		if child == 0 {
			return nil, at.Errorf("task %q: its child %q does not exist", b.texts.of(e.parent), b.texts.of(e.child))
		}
		pairs[k] = [2]int{int(parent) - 1, int(child) - 1}
	}
	return pairs, nil
}

// Build completes the workflow. In errors about the workflow as a whole the place is end.
func (b *Builder) Build(end Place) error {
	if len(b.wf.Tasks) == 0 {
		return end.Errorf("the workflow has no tasks")
	}
	if b.wf.Name == "" {
		return end.Errorf("the workflow has no name")
	}
	if name := []rune(b.wf.Name); len(name) > maxName {
		b.Warn(Place{File: end.File}, "the name of the workflow has %d characters; it is shortened to %d",
			len(name), maxName)
		b.wf.Name = string(name[:maxName])
	}
	edges, err := b.Edges()
	if err != nil {
		return err
	}
	b.edges, b.given = nil, 0 // a large workflow needs much memory from here on
	if b.wf.Graph, err = b.graph(edges); err != nil {
		return err
	}
	b.warnOfWriters()
	if err := b.orderByFiles(edges); err != nil {
		return err
	}
	if b.strict && len(b.Warnings) > 0 {
		return b.Warnings[0].Place.Errorf("%w", errors.New(b.Warnings[0].Message))
	}
	return nil
}

// maxName is the maximum number of characters in the name of a workflow, which appears in lists and in directory names.
const maxName = 200

// graph creates the graph, or returns an error that shows the cycle.
func (b *Builder) graph(edges [][2]int) (*dag.Graph, error) {
	g, err := dag.New(len(b.wf.Tasks), edges)
	if cycle, ok := errors.AsType[*dag.CycleError](err); ok {
		return nil, b.wf.places[cycle.Cycle[0]].Errorf("%w", b.showCycle(cycle.Cycle))
	}
	return g, err
}

// maxShown is the maximum number of tasks of a cycle that an error lists, so that the error remains readable.
const maxShown = 100

func (b *Builder) showCycle(cycle []int) error {
	var text strings.Builder
	text.WriteString("the tasks form a cycle: ")
	for _, i := range cycle[:min(maxShown, len(cycle))] {
		text.WriteString(Printable(b.wf.Tasks[i].ID) + " -> ")
	}
	if len(cycle) > maxShown {
		fmt.Fprintf(&text, "%d more -> ", len(cycle)-maxShown)
	}
	text.WriteString(Printable(b.wf.Tasks[cycle[0]].ID))
	return errors.New(text.String())
}

// warnOfWriters warns of the first file that a second task writes.
func (b *Builder) warnOfWriters() {
	if len(b.also) == 0 {
		return
	}
	var first string
	for f, tasks := range b.also {
		if first == "" || tasks[0] < b.also[first][0] || tasks[0] == b.also[first][0] && f < first {
			first = f
		}
	}
	i, _ := b.writer(first)
	j := b.also[first][0]
	b.Warn(b.wf.places[j], "file %q is written by two tasks, %s and %s; the workflow can be planned but not run%s",
		first, b.wf.Tasks[i].ID, b.wf.Tasks[j].ID, AndMore(len(b.also)-1))
}

// AndMore returns the end of a warning that represents n others, or "" if n is 0.
func AndMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", n)
}
