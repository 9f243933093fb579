package workflow

import (
	"fmt"
	"slices"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A handover represents a file that one task reads and other tasks write, if no writer is a parent of the reader.
type handover struct {
	file    string
	reader  int32
	writers int32 // number of writers
	known   bool  // the search showed that no order exists; false: the search ended early
}

// A misorder represents a file that one task reads and other tasks write, if all writers come after the reader in the
// order of the workflow.
type misorder struct {
	file           string
	reader, writer int
}

func (m *misorder) Error() string {
	return fmt.Sprintf("reads %q, which is written only by a task that comes after it", Short(m.file))
}

// orderByFiles makes a task that reads a file a child of the task that writes the file, unless the reader already comes
// after the writer. Without this edge, it would be random whether the file exists when the reader starts. A file with
// several writers exists once one of the writers has ended; a reader of such a file gets edges only if it is known to
// come after none of the writers, and it gets no edges from writers that come after it.
//
// If all writers of a file come after its reader, the specified order is kept: published traces contain such files, and
// the structure and runtimes of these traces are good for planning. But no run can provide the file; see Runnable.
func (b *Builder) orderByFiles(edges [][2]int) error {
	all, pairs := b.withoutLater(b.handovers())
	all, pairs = b.forward(unordered(b.wf.Graph, all, pairs))
	if len(pairs) == 0 {
		return nil
	}
	var first Warning // warning about the first handover that is known to lack an order
	apart := 0        // number of such handovers
	rest := pairs
	for _, h := range all {
		if h.known && apart == 0 {
			reader, writer := Short(b.wf.Tasks[h.reader].ID), Short(b.wf.Tasks[rest[0][0]].ID)
			first = Warning{b.wf.places[h.reader], fmt.Sprintf("task %q reads %q, which task %q writes, but does not "+
				"come after it; it becomes its child", reader, Short(h.file), writer)}
		}
		if h.known {
			apart++
		}
		rest = rest[h.writers:]
	}
	if apart > 0 && !b.FileOrder {
		b.WarnFor(first, apart-1)
	}
	var err error
	b.wf.Graph, err = b.graph(append(edges, pairs...))
	return err
}

// reaches determines for each pair whether the second task comes after the first, as far as maxWalks allows.
func reaches(g *dag.Graph, pairs [][2]int) []dag.Reach {
	return g.Reaches(pairs, maxWalks*(g.Len()+g.Edges()))
}

// unordered drops the handovers whose reader comes after a writer. It also drops handovers with several writers for
// which it could not determine this.
func unordered(g *dag.Graph, all []handover, pairs [][2]int) ([]handover, [][2]int) {
	every := reaches(g, pairs)
	kept, made := all[:0], pairs[:0]
	for _, h := range all {
		found, among := every[:h.writers], pairs[:h.writers]
		every, pairs = every[h.writers:], pairs[h.writers:]
		h.known = !slices.Contains(found, dag.Unknown)
		if slices.Contains(found, dag.Reached) || !h.known && h.writers > 1 {
			continue
		}
		kept, made = append(kept, h), append(made, among...)
	}
	return kept, made
}

// forward drops the handovers whose writers all come after the reader. It records the first dropped handover, and adds
// a warning about it.
func (b *Builder) forward(all []handover, pairs [][2]int) ([]handover, [][2]int) {
	if len(pairs) == 0 {
		return all, pairs
	}
	back := make([][2]int, len(pairs)) // {reader, writer}
	for k, p := range pairs {
		back[k] = [2]int{p[1], p[0]}
	}
	every := reaches(b.wf.Graph, back)
	kept, made := all[:0], pairs[:0]
	against := 0
	for _, h := range all {
		found, among := every[:h.writers], pairs[:h.writers]
		every, pairs = every[h.writers:], pairs[h.writers:]
		if slices.ContainsFunc(found, func(r dag.Reach) bool { return r != dag.Reached }) {
			kept, made = append(kept, h), append(made, among...)
			continue
		}
		if against++; against == 1 {
			b.wf.against = &misorder{h.file, int(h.reader), among[0][0]}
		}
	}
	if m := b.wf.against; m != nil {
		reader, writer := Short(b.wf.Tasks[m.reader].ID), Short(b.wf.Tasks[m.writer].ID)
		const noRun = "task %q %s, task %q; the workflow can be planned but not run"
		b.WarnFor(Warning{b.wf.places[m.reader], fmt.Sprintf(noRun, reader, m, writer)}, against-1)
	}
	return kept, made
}

// withoutLater drops, from handovers with several writers, each writer that comes after the reader or for which this
// could not be determined. If all writers of a handover come after the reader, it drops none of them: see forward.
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
	later := reaches(b.wf.Graph, back)
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

// maxWalks limits the time for determining which tasks come after the writers of the files that they read; it is
// measured in walks through the whole graph. The same limit applies to determining which writers come after the
// readers. If the limit is reached before the order of a file's reader and its only writer is known, an edge is added
// without a warning; the edge has no effect if the order already exists.
const maxWalks = 256

// maxWriters limits the number of writers of a file that are considered for each reader. A file with more writers does
// not order tasks.
const maxWriters = 64

// handovers returns each file that a task reads and others write, unless a parent of the reader or the reader itself
// writes it. The pairs are {writer, reader}, in the order of the handovers.
func (b *Builder) handovers() (all []handover, pairs [][2]int) {
	for i := range b.wf.Tasks {
		for _, f := range b.wf.Tasks[i].Inputs {
			w, ok := b.writer(f)
			if !ok || len(b.also[f]) >= maxWriters {
				continue
			}
			before := len(pairs)
			pairs = append(pairs, [2]int{w, i})
			for _, w := range b.also[f] {
				pairs = append(pairs, [2]int{w, i})
			}
			if slices.ContainsFunc(pairs[before:], func(pair [2]int) bool { return ordered(b.wf.Graph, pair) }) {
				pairs = pairs[:before]
				continue
			}
			all = append(all, handover{file: f, reader: int32(i), writers: int32(len(pairs) - before)})
		}
	}
	return all, pairs
}

// ordered reports whether the pair {writer, reader} is a parent and its child, or the same task.
func ordered(g *dag.Graph, pair [2]int) bool {
	_, direct := slices.BinarySearch(g.Parents(pair[1]), pair[0])
	return direct || pair[0] == pair[1]
}
