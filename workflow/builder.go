package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/dag"
)

// A Builder makes a workflow out of what a reader finds in a file of some format, or out of what a program says. The
// caller sets the fields that describe the workflow (its name, author, past execution) itself; tasks, edges and files
// go through the Builder, in any order: an edge may name a task that is added later. Build then resolves the names,
// makes the graph and completes the workflow.
//
// The Builder does all the checks that do not depend on the format, so every format is refused for the same reasons in
// the same words: an id missing or given twice, a parent or child that does not exist, a file with two sizes, a cycle,
// no task, no name. The caller says where it found each thing, and the errors name that place. After an error the
// Builder is spent.
//
// A file with two writers is a warning: published traces have such files, and their structure and runtimes are good for
// planning. Only a run must know whose file it is; see Runnable.
type Builder struct {
	Warnings []Warning // in the order in which they were found

	// FileOrder says that in this format the files alone order the tasks. Otherwise the Builder warns of a task that
	// reads a file without coming after the task that writes it.
	FileOrder bool

	wf       *Workflow
	strict   bool
	maxTasks int

	texts    map[string]string // the one copy of each text, for many tasks say the same
	numbers  map[string]int32  // :: task id → index in mentions
	mentions []mention
	writers  map[string]int   // :: file id → the first task that writes it
	also     map[string][]int // :: file id → the further tasks that write it
	edges    []edge
}

// A mention is the id of a task that was added, or that an edge has named.
type mention struct {
	id   string
	task int32 // its index; missing: not added yet
}

const missing = -1

// An edge keeps numbers instead of ids: a task may have as many edges as there are tasks, and a number takes a
// quarter of a string.
type edge struct {
	parent, child int32 // indices in mentions
	at            Place
}

// NewBuilder returns a Builder that completes wf. Of the options it heeds Strict and MaxTasks.
func NewBuilder(wf *Workflow, opts Options) *Builder {
	return &Builder{
		wf: wf, strict: opts.Strict, maxTasks: cmp.Or(opts.MaxTasks, DefaultMaxTasks),
		texts: make(map[string]string), numbers: make(map[string]int32), writers: make(map[string]int),
		also: make(map[string][]int),
	}
}

// Add adds a task. It drops repetitions in the lists of files, and completes what was left out: the name is then the
// id, and the task needs one cpu. Until Build the caller may still change the task, but not its id and its files.
func (b *Builder) Add(t Task, at Place) error {
	i := len(b.wf.Tasks)
	if t.ID == "" {
		return at.Errorf("the task has no id")
	}
	if i == b.maxTasks {
		return at.Errorf("the workflow has more than %d tasks", b.maxTasks)
	}
	m := &b.mentions[b.mention(t.ID)]
	if m.task != missing {
		return at.Errorf("task %q: another task has the same id (%s)", t.ID, b.wf.Place(int(m.task)))
	}
	m.task = int32(i)
	t.ID, t.Name, t.CPUs = m.id, cmp.Or(b.Intern(t.Name), m.id), cmp.Or(t.CPUs, 1)
	t.Inputs, t.Outputs = b.set(t.Inputs), b.set(t.Outputs)
	for _, f := range t.Outputs {
		if _, ok := b.writers[f]; ok {
			b.also[f] = append(b.also[f], i)
			continue
		}
		b.writers[f] = i
	}
	b.wf.Tasks = append(b.wf.Tasks, t)
	b.wf.places = append(b.wf.places, at)
	return nil
}

// Grow makes room for n more tasks, for callers who know how many there will be.
func (b *Builder) Grow(n int) {
	b.wf.Tasks = slices.Grow(b.wf.Tasks, n)
	b.wf.places = slices.Grow(b.wf.places, n)
}

// Index returns the index of the task with an id, among those that were added.
func (b *Builder) Index(id string) (i int, ok bool) {
	n, ok := b.numbers[id]
	if !ok || b.mentions[n].task == missing {
		return 0, false
	}
	return int(b.mentions[n].task), true
}

// Edge says that child starts after parent. An edge given twice counts once.
func (b *Builder) Edge(parent, child string, at Place) {
	b.edges = append(b.edges, edge{b.mention(parent), b.mention(child), at})
}

// File gives the size of a file.
func (b *Builder) File(id string, bytes int64, at Place) error {
	if id == "" {
		return at.Errorf("the file has no id")
	}
	if size, ok := b.wf.FileSizes[id]; ok && size != bytes {
		return at.Errorf("file %q is listed twice, with %d and %d bytes", id, size, bytes)
	}
	if b.wf.FileSizes == nil {
		b.wf.FileSizes = make(map[string]int64)
	}
	b.wf.FileSizes[b.Intern(id)] = bytes
	return nil
}

// Warn notes something odd. With Options.Strict, Build makes an error of the first warning.
func (b *Builder) Warn(at Place, format string, args ...any) {
	b.Warnings = append(b.Warnings, Warning{at, fmt.Sprintf(format, args...)})
}

// Intern returns the one copy of s. Add and File intern names and files themselves.
func (b *Builder) Intern(s string) string {
	if one, ok := b.texts[s]; ok {
		return one
	}
	b.texts[s] = s
	return s
}

// set is list without repetitions, which say nothing in the lists of files.
func (b *Builder) set(list []string) []string {
	set := slices.Grow([]string(nil), len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			set = append(set, b.Intern(s))
		}
	}
	return set
}

// mention returns the number of an id.
func (b *Builder) mention(id string) int32 {
	n, ok := b.numbers[id]
	if !ok {
		n = int32(len(b.mentions))
		b.numbers[id] = n
		b.mentions = append(b.mentions, mention{id, missing})
	}
	return n
}

// Edges returns the edges as pairs of task indices {parent, child}, in the order in which they were given. It fails if
// one of them names a task that was not added, and is therefore for the time when all have been.
func (b *Builder) Edges() ([][2]int, error) {
	pairs := make([][2]int, len(b.edges))
	for k, e := range b.edges {
		parent, child := b.mentions[e.parent], b.mentions[e.child]
		if parent.task == missing {
			return nil, e.at.Errorf("task %q: its parent %q does not exist", child.id, parent.id)
		}
		if child.task == missing {
			return nil, e.at.Errorf("task %q: its child %q does not exist", parent.id, child.id)
		}
		pairs[k] = [2]int{int(parent.task), int(child.task)}
	}
	return pairs, nil
}

// Build completes the workflow. Errors about the workflow as a whole name the place end.
func (b *Builder) Build(end Place) error {
	if len(b.wf.Tasks) == 0 {
		return end.Errorf("the workflow has no tasks")
	}
	if b.wf.Name == "" {
		return end.Errorf("the workflow has no name")
	}
	edges, err := b.Edges()
	if err != nil {
		return err
	}
	if b.wf.Graph, err = b.graph(edges); err != nil {
		return err
	}
	b.warnOfWriters()
	if err := b.orderByFiles(edges); err != nil {
		return err
	}
	if b.strict && len(b.Warnings) > 0 {
		return b.Warnings[0].Place.Errorf("%s", b.Warnings[0].Message)
	}
	return nil
}

// graph makes the graph, or an error that shows the cycle.
func (b *Builder) graph(edges [][2]int) (*dag.Graph, error) {
	g, err := dag.New(len(b.wf.Tasks), edges)
	if cycle, ok := errors.AsType[*dag.CycleError](err); ok {
		return nil, b.wf.places[cycle.Cycle[0]].Errorf("%s", b.showCycle(cycle.Cycle))
	}
	return g, err
}

// maxShown is how many tasks of a cycle are shown: a message of a megabyte helps nobody.
const maxShown = 100

func (b *Builder) showCycle(cycle []int) string {
	var text strings.Builder
	text.WriteString("the tasks form a cycle: ")
	for _, i := range cycle[:min(maxShown, len(cycle))] {
		text.WriteString(Printable(b.wf.Tasks[i].ID) + " -> ")
	}
	if len(cycle) > maxShown {
		fmt.Fprintf(&text, "%d more -> ", len(cycle)-maxShown)
	}
	return text.String() + Printable(b.wf.Tasks[cycle[0]].ID)
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
	i, j := b.writers[first], b.also[first][0]
	b.Warn(b.wf.places[j], "file %q is written by two tasks, %s and %s; the workflow can be planned, but not run%s",
		first, b.wf.Tasks[i].ID, b.wf.Tasks[j].ID, AndMore(len(b.also)-1))
}

// A handover is a file that a task reads and others write, none of them a parent of the reader.
type handover struct {
	file    string
	reader  int32
	writers int32 // their number
}

// orderByFiles makes a task that reads a file a child of the task that writes it, unless it comes after that task
// already. Without this edge, chance would decide whether the file is there when the task starts. A file with several
// writers is there once one of them has ended; its reader needs edges only if it is known to come after none, and not
// from those that come after the reader and write the file anew.
func (b *Builder) orderByFiles(edges [][2]int) error {
	handovers, pairs := b.withoutLater(b.handovers())
	reaches := b.wf.Graph.Reaches(pairs, maxWalks*(len(b.wf.Tasks)+b.wf.Graph.Edges()))
	made := pairs[:0]    // the edges to add to those that were given
	var first string     // what is said of the first handover that lacks an order
	var apart, place int // how many do, and which task the first is about
	for _, h := range handovers {
		found, among := reaches[:h.writers], pairs[:h.writers]
		reaches, pairs = reaches[h.writers:], pairs[h.writers:]
		known := !slices.Contains(found, dag.Unknown)
		if slices.Contains(found, dag.Reached) || !known && h.writers > 1 {
			continue
		}
		if known && apart == 0 {
			place = int(h.reader)
			first = fmt.Sprintf("task %q reads %q, which task %q writes, but does not come after it; "+
				"it is made its child", b.wf.Tasks[h.reader].ID, h.file, b.wf.Tasks[among[0][0]].ID)
		}
		if known {
			apart++
		}
		made = append(made, among...)
	}
	if len(made) == 0 {
		return nil
	}
	if apart > 0 && !b.FileOrder {
		b.Warn(b.wf.places[place], "%s%s", first, AndMore(apart-1))
	}
	var err error
	b.wf.Graph, err = b.graph(append(edges, made...))
	return err
}

// withoutLater leaves out of handovers with several writers those that come after the reader, and those of which this
// is not found out. Where all of them come after the reader it leaves out none: the edges form a cycle, which is
// refused.
func (b *Builder) withoutLater(all []handover, pairs [][2]int) ([]handover, [][2]int) {
	var back [][2]int // {reader, writer}
	rest := pairs
	for _, h := range all {
		if h.writers > 1 {
			for _, p := range rest[:h.writers] {
				back = append(back, [2]int{p[1], p[0]})
			}
		}
		rest = rest[h.writers:]
	}
	if len(back) == 0 {
		return all, pairs
	}
	later := b.wf.Graph.Reaches(back, maxWalks*(len(b.wf.Tasks)+b.wf.Graph.Edges()))
	rest, pairs = pairs, pairs[:0]
	kept := all[:0]
	for _, h := range all {
		before, among := len(pairs), rest[:h.writers]
		rest = rest[h.writers:]
		if h.writers == 1 {
			pairs, kept = append(pairs, among...), append(kept, h)
			continue
		}
		found := later[:h.writers]
		later = later[h.writers:]
		every := !slices.ContainsFunc(found, func(r dag.Reach) bool { return r != dag.Reached })
		for i, p := range among {
			if every || found[i] == dag.Apart {
				pairs = append(pairs, p)
			}
		}
		if h.writers = int32(len(pairs) - before); h.writers > 0 {
			kept = append(kept, h)
		}
	}
	return kept, pairs
}

// maxWalks bounds, in walks through the whole graph, the time to find out which tasks come after those whose files they
// read, and in as many again, which writers come after the readers. What is not known by then of the one writer of a
// file becomes an edge without a warning: where the order exists already in other words, the edge changes nothing.
const maxWalks = 256

// maxWriters bounds, for each reader, the writers of a file that are looked at. A file with more of them orders
// nothing.
const maxWriters = 64

// handovers returns each file that a task reads and others write, except where a parent of the reader writes it, or the
// reader itself. The pairs are {writer, reader}, those of the first handover first.
func (b *Builder) handovers() (all []handover, pairs [][2]int) {
	for i := range b.wf.Tasks {
		for _, f := range b.wf.Tasks[i].Inputs {
			w, ok := b.writers[f]
			if !ok || len(b.also[f]) >= maxWriters {
				continue
			}
			before := len(pairs)
			pairs = append(pairs, [2]int{w, i})
			for _, w := range b.also[f] {
				pairs = append(pairs, [2]int{w, i})
			}
			if slices.ContainsFunc(pairs[before:], b.ordered) {
				pairs = pairs[:before]
				continue
			}
			all = append(all, handover{f, int32(i), int32(len(pairs) - before)})
		}
	}
	return all, pairs
}

// ordered reports whether the pair {writer, reader} is a parent and its child, or one task.
func (b *Builder) ordered(pair [2]int) bool {
	_, direct := slices.BinarySearch(b.wf.Graph.Parents(pair[1]), pair[0])
	return direct || pair[0] == pair[1]
}

// AndMore ends a warning that speaks for n more of its kind.
func AndMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", n)
}
