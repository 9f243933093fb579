package dagman

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// Write writes a workflow as a .dag with submit descriptions, at least one for each transformation, and a .dag for each
// sub-DAG. It writes to files created by create, with names without folders; the .dag of the workflow is the first
// file. Reading the files yields the same workflow, except for measurements, the sizes of files, information for users,
// and the grouping of tasks into jobs of several processes.
//
// The error has kind Unsatisfiable if the format cannot represent the workflow, for example an argument of two lines.
// Some files may exist in that case.
func Write(wf *workflow.Workflow, create func(name string) (io.WriteCloser, error)) error {
	w := &writer{wf: wf, create: create, nodes: make([]string, len(wf.Tasks)), shapes: make(map[string]*shape)}
	if err := w.split(); err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	w.name()
	if err := w.measure(); err != nil {
		return err
	}
	for k := range w.parts {
		if err := w.file(w.parts[k].file, func(out *bufio.Writer) error { return w.dag(out, k) }); err != nil {
			return err
		}
	}
	return w.descriptions()
}

// A writer is the state of writing one workflow.
type writer struct {
	wf     *workflow.Workflow
	create func(name string) (io.WriteCloser, error)

	parts  []part            // parts of the workflow; each of them becomes a .dag
	in     []int             // :: task → the innermost part that contains it
	before map[int][]int     // :: item → the items that precede it, omitting pairs of two tasks
	nodes  []string          // names of the tasks' nodes
	shapes map[string]*shape // :: transformation and commands → the common part of their descriptions
	order  []*shape
}

// A shape is the submit description for tasks of one transformation with the same commands.
type shape struct {
	file     string
	settings []setting // settings of the first of these tasks
	varies   []bool    // for each setting, whether another task has a different value
}

// refuse returns an error about task i.
func (w *writer) refuse(i int, format string, args ...any) error {
	return corral.ErrorAt(corral.Unsatisfiable, w.wf.Place(i).String(), "task %q: %w", w.wf.Tasks[i].ID,
		fmt.Errorf("DAGMan's format cannot hold "+format, args...))
}

// settings returns the settings of task i.
func (w *writer) settings(i int) ([]setting, error) {
	settings, err := settingsOf(&w.wf.Tasks[i], w.parts[w.in[i]].prefix+w.nodes[i])
	if err != nil {
		return nil, w.refuse(i, "%w", err)
	}
	return settings, nil
}

// measure determines the shapes of all tasks, and which of their settings vary.
func (w *writer) measure() error {
	files := make(workflow.Names)
	for i := range w.wf.Tasks {
		settings, err := w.settings(i)
		if err != nil {
			return err
		}
		key := shapeOf(&w.wf.Tasks[i], settings)
		s := w.shapes[key]
		if s == nil {
			file := files.Take(legal(cmp.Or(w.wf.Tasks[i].Name, "task"))) + ".sub"
			s = &shape{file: file, settings: settings, varies: make([]bool, len(settings))}
			w.shapes[key], w.order = s, append(w.order, s)
		}
		for k := range settings {
			s.varies[k] = s.varies[k] || settings[k].Value != s.settings[k].Value
		}
	}
	return nil
}

func shapeOf(t *workflow.Task, settings []setting) string {
	key := t.Name
	for _, s := range settings {
		key += "\x00" + s.Command
	}
	return key
}

// descriptions writes a submit description for each shape.
func (w *writer) descriptions() error {
	for _, s := range w.order {
		err := w.file(s.file, func(out *bufio.Writer) error {
			for k, set := range s.settings {
				value := set.Value
				if s.varies[k] {
					value = "$(" + set.macro() + ")"
				}
				fmt.Fprintf(out, "%s = %s\n", set.Command, value)
			}
			_, err := out.WriteString("queue\n")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// file writes one file. The buffered writer keeps the first error until it is flushed.
func (w *writer) file(name string, text func(*bufio.Writer) error) error {
	f, err := w.create(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	if err := cmp.Or(text(out), out.Flush()); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
