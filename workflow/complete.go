package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/dag"
)

// complete puts together what was read: it resolves names, joins executions to their tasks, and makes
// the graph. The end of ctx ends it.
func (r *reader) complete(ctx context.Context) error {
	r.wf.source.name = r.name
	if len(r.wf.Tasks) == 0 {
		return r.errorf("the workflow has no tasks")
	}
	if r.wf.Name == "" {
		return r.errorf("the workflow has no name")
	}
	index, err := r.index()
	if err != nil {
		return err
	}
	if err := r.joinExecutions(index); err != nil {
		return err
	}
	edges, err := r.edges(index)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.wf.Graph, err = r.graph(edges); err != nil {
		return err
	}
	return r.orderByFiles()
}

// index maps each task's id to its number.
func (r *reader) index() (map[string]int, error) {
	index := make(map[string]int, len(r.wf.Tasks))
	lines := r.wf.source.lines
	for i := range r.wf.Tasks {
		id := r.wf.Tasks[i].ID
		if first, ok := index[id]; ok {
			return nil, r.at(lines[i], "task %q: another task, on line %d, has the same id", id, lines[first])
		}
		index[id] = i
	}
	return index, nil
}

func (r *reader) joinExecutions(index map[string]int) error {
	joined := make([]bool, len(r.wf.Tasks))
	for k := range r.runs {
		e, line := &r.runs[k], r.runLines[k]
		i, ok := index[e.ID]
		if !ok {
			return r.at(line, "execution of task %q, which the specification does not have", e.ID)
		}
		if joined[i] {
			return r.at(line, "task %q has two executions", e.ID)
		}
		joined[i] = true
		if err := r.wf.Tasks[i].execute(e); err != nil {
			return r.at(line, "execution of task %q: %w", e.ID, err)
		}
		started, ok := parseTime(e.ExecutedAt)
		if !ok {
			r.warn(int(line), "execution of task %q: executedAt %q is not a time that is understood", e.ID, e.ExecutedAt)
		}
		r.wf.Tasks[i].StartedAt = started
	}
	for i := range r.wf.Tasks {
		r.wf.Tasks[i].derive()
	}
	return nil
}

// edges returns the edges that the lists of parents and children name. An edge in either list counts:
// a task then never starts too early. If one kind of list is empty throughout, as in files written by
// hand, the other one speaks alone.
func (r *reader) edges(index map[string]int) ([][2]int, error) {
	up, err := r.named(index, "parent", func(l links) []string { return l.parents })
	if err != nil {
		return nil, err
	}
	down, err := r.named(index, "child", func(l links) []string { return l.children })
	if err != nil {
		return nil, err
	}
	for k := range up {
		up[k][0], up[k][1] = up[k][1], up[k][0]
	}
	if len(up) > 0 && len(down) > 0 {
		r.warnOfDifference(up, down)
	}
	return append(up, down...), nil
}

// named returns a pair {task, relative} for each name in the lists that of picks.
func (r *reader) named(index map[string]int, what string, of func(links) []string) ([][2]int, error) {
	var pairs [][2]int
	for i := range r.links {
		for _, name := range of(r.links[i]) {
			j, ok := index[name]
			if !ok {
				return nil, r.at(r.wf.source.lines[i], "task %q: its %s %q does not exist", r.wf.Tasks[i].ID, what, name)
			}
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs, nil
}

func (r *reader) warnOfDifference(up, down [][2]int) {
	onlyUp, onlyDown := difference(up, down), difference(down, up)
	for _, d := range []struct {
		edges    [][2]int
		in, lack string
	}{{onlyUp, "parents", "children"}, {onlyDown, "children", "parents"}} {
		if len(d.edges) > 0 {
			a, b := d.edges[0][0], d.edges[0][1]
			r.warn(int(r.wf.source.lines[min(a, b)]), "%s -> %s is in a list of %s but in none of %s; it counts%s",
				r.wf.Tasks[a].ID, r.wf.Tasks[b].ID, d.in, d.lack, andMore(len(d.edges)-1))
		}
	}
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", n)
}

// difference returns the edges of a that b lacks. It sorts both.
func difference(a, b [][2]int) [][2]int {
	byEnds := func(x, y [2]int) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) }
	slices.SortFunc(a, byEnds)
	slices.SortFunc(b, byEnds)
	var only [][2]int
	for _, e := range a {
		if _, ok := slices.BinarySearchFunc(b, e, byEnds); !ok {
			only = append(only, e)
		}
	}
	return only
}

// graph makes the graph, or an error that shows the cycle.
func (r *reader) graph(edges [][2]int) (*dag.Graph, error) {
	g, err := dag.New(len(r.wf.Tasks), edges)
	var cycle *dag.CycleError
	if errors.As(err, &cycle) {
		return nil, r.at(r.wf.source.lines[cycle.Cycle[0]], "%s", r.showCycle(cycle.Cycle))
	}
	return g, err
}

// maxShown is how many tasks of a cycle are shown: a message of a megabyte helps nobody.
const maxShown = 100

func (r *reader) showCycle(cycle []int) string {
	var b strings.Builder
	b.WriteString("the tasks form a cycle: ")
	for _, i := range cycle[:min(maxShown, len(cycle))] {
		b.WriteString(r.wf.Tasks[i].ID + " -> ")
	}
	if len(cycle) > maxShown {
		fmt.Fprintf(&b, "%d more -> ", len(cycle)-maxShown)
	}
	return b.String() + r.wf.Tasks[cycle[0]].ID
}

// orderByFiles refuses files with two writers, and makes a task that reads a file the child of the
// task that writes it unless it is its descendant already.
func (r *reader) orderByFiles() error {
	writer, err := r.writers()
	if err != nil {
		return err
	}
	var pairs [][2]int // {writer, reader}, where the lists of parents do not say it
	var files []string
	for i := range r.wf.Tasks {
		for _, f := range r.wf.Tasks[i].Inputs {
			w, ok := writer[f]
			_, direct := slices.BinarySearch(r.wf.Graph.Parents(i), w)
			if ok && w != i && !direct {
				pairs, files = append(pairs, [2]int{w, i}), append(files, f)
			}
		}
	}
	var missing, made [][2]int // of pairs: those that are no order yet, and the edges to make
	var first string
	for k, reach := range r.wf.Graph.Reaches(pairs, maxWalks*(len(r.wf.Tasks)+r.wf.Graph.Edges())) {
		if reach == dag.Apart {
			first = or(first, files[k])
			missing = append(missing, pairs[k])
		}
		if reach != dag.Reached {
			made = append(made, pairs[k])
		}
	}
	if len(made) == 0 {
		return nil
	}
	if len(missing) > 0 {
		w, i := missing[0][0], missing[0][1]
		r.warn(int(r.wf.source.lines[i]), "task %q reads %q, which task %q writes, but does not come after it; it is made its child%s",
			r.wf.Tasks[i].ID, first, r.wf.Tasks[w].ID, andMore(len(missing)-1))
	}
	r.wf.Graph, err = r.graph(append(r.wf.edges(), made...))
	return err
}

// maxWalks bounds the time to find out which tasks come after those whose files they read, in walks through the graph.
// What is not known by then becomes an edge without a word: one that is there already in other words changes nothing.
const maxWalks = 256

func (r *reader) writers() (map[string]int, error) {
	writer := make(map[string]int) // :: file id → task
	for i := range r.wf.Tasks {
		for _, f := range r.wf.Tasks[i].Outputs {
			if other, ok := writer[f]; ok {
				return nil, r.at(r.wf.source.lines[i], "file %q is written by two tasks: %s and %s",
					f, r.wf.Tasks[other].ID, r.wf.Tasks[i].ID)
			}
			writer[f] = i
		}
	}
	return writer, nil
}

func (w *Workflow) edges() [][2]int {
	all := make([][2]int, 0, w.Graph.Edges())
	for i := range w.Tasks {
		for _, c := range w.Graph.Children(i) {
			all = append(all, [2]int{i, c})
		}
	}
	return all
}
