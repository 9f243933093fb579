package dagman

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dagman/job"
)

// attributeWorkflow is the attribute of DAGMan's own job in which Write keeps the workflow's name.
const attributeWorkflow = "CorralWorkflow"

// Write writes a workflow as a .dag with submit descriptions, one for each transformation: files that create makes, of
// names without a folder, the .dag first. Reading them gives the same workflow, but for what was measured of it, the
// sizes of files, and what describes it to people.
//
// The error has kind Unsatisfiable if the format cannot hold the workflow, such as an argument of two lines. Some
// files may be there then.
func Write(wf *workflow.Workflow, create func(name string) (io.WriteCloser, error)) error {
	w := &writer{wf: wf, create: create, nodes: make([]string, len(wf.Tasks)), shapes: make(map[string]*shape)}
	if err := w.check(); err != nil {
		return err
	}
	w.name()
	if err := w.measure(); err != nil {
		return err
	}
	dag := legal(cmp.Or(strings.TrimSuffix(wf.Name, ".dag"), "workflow")) + ".dag"
	if err := w.file(dag, w.dag); err != nil {
		return err
	}
	return w.descriptions()
}

// A writer writes one workflow.
type writer struct {
	wf     *workflow.Workflow
	create func(name string) (io.WriteCloser, error)

	nodes  []string          // the names of the tasks' nodes
	shapes map[string]*shape // :: transformation and commands → what their descriptions have in common
	order  []*shape
}

// A shape is the submit description of tasks of one transformation that are described by the same commands.
type shape struct {
	file     string
	settings []job.Setting // those of the first of the tasks
	varies   []bool        // whether another task has another value
}

// refuse is about task i.
func (w *writer) refuse(i int, format string, args ...any) error {
	return corral.ErrorAt(corral.Unsatisfiable, w.wf.Place(i).String(), "task %q: %w", w.wf.Tasks[i].ID,
		fmt.Errorf("DAGMan's format cannot hold "+format, args...))
}

// check refuses what the .dag has no place for, whatever the tasks are.
func (w *writer) check() error {
	for _, s := range w.wf.Subworkflows {
		if s.Control != nil || s.Retries != nil {
			return w.refuse(s.First, "what is said of subworkflow %q as a whole", s.Name)
		}
		for i := s.First; i < s.End; i++ {
			if c := w.wf.Tasks[i].Control; c != nil && c.Abort != nil {
				return w.refuse(i, "an abort of subworkflow %q alone", s.Name)
			}
		}
	}
	if strings.ContainsAny(w.wf.Name, "\n\r\x00") || strings.HasSuffix(w.wf.Name, `\`) {
		return corral.Errorf(corral.Unsatisfiable, "DAGMan's format cannot hold the name %q", w.wf.Name)
	}
	for category := range w.wf.Categories {
		if !plainWord(category) {
			return corral.Errorf(corral.Unsatisfiable, "DAGMan's format cannot hold the category %q", category)
		}
	}
	final := none
	for i := range w.wf.Tasks {
		if err := w.checkControl(i); err != nil {
			return err
		}
		if c := w.wf.Tasks[i].Control; c != nil && c.Final {
			if final != none {
				return w.refuse(i, "a second final task")
			}
			final = i
		}
	}
	if final != none {
		return w.checkFinal(final)
	}
	return nil
}

// checkFinal refuses a final task that is not simply behind all others, where a FINAL node is.
func (w *writer) checkFinal(final int) error {
	g := w.wf.Graph
	if len(g.Children(final)) > 0 {
		return w.refuse(final, "children of a final task")
	}
	parents := g.Parents(final)
	for i := range w.wf.Tasks {
		children := g.Children(i)
		last := i != final && (len(children) == 0 || len(children) == 1 && children[0] == final)
		if _, parent := slices.BinarySearch(parents, i); parent != last {
			return w.refuse(final, "a final task that is not behind just the last ones")
		}
	}
	return nil
}

// checkControl refuses what no statement can say of a task.
func (w *writer) checkControl(i int) error {
	t := &w.wf.Tasks[i]
	c := t.Control
	switch {
	case c == nil:
		return nil
	case c.Final && (c.Done || c.Category != "" || c.Abort != nil || c.UnlessExit != 0):
		return w.refuse(i, "a final task with a category, an abort, an exit status to spare retries, or done")
	case c.UnlessExit != 0 && t.Retries == nil:
		return w.refuse(i, "an exit status to spare retries without a number of retries")
	case c.Category != "" && !plainWord(c.Category):
		return w.refuse(i, "the category %q", c.Category)
	}
	for _, s := range []*workflow.Script{c.Pre, c.Post, c.Hold} {
		if s == nil {
			continue
		}
		if s.Dir != "" || len(s.Argv) == 0 || s.DeferAfter%1e9 != 0 || s.DeferStatus == 0 && s.DeferAfter != 0 {
			return w.refuse(i, "a script in a folder, without a name, or that is deferred by parts of a second")
		}
		for _, word := range s.Argv {
			if !plainWord(word) {
				return w.refuse(i, "the script's argument %q", word)
			}
		}
	}
	return nil
}

// plainWord reports whether s is one word of a .dag.
func plainWord(s string) bool {
	return s != "" && s[0] != '"' && !strings.HasSuffix(s, `\`) &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// name gives each task's node a name: its id, if DAGMan takes that.
func (w *writer) name() {
	taken := make(map[string]bool)
	for i := range w.wf.Tasks {
		if id := w.wf.Tasks[i].ID; legal(id) == id {
			w.nodes[i], taken[id] = id, true
		}
	}
	for i := range w.wf.Tasks {
		if w.nodes[i] == "" {
			w.nodes[i] = unlike(legal(w.wf.Tasks[i].ID), taken)
		}
	}
}

// unlike returns name, with a number behind it if it is taken already, and takes it.
func unlike(name string, taken map[string]bool) string {
	unique := name
	for n := 2; taken[unique]; n++ {
		unique = name + "_" + strconv.Itoa(n)
	}
	taken[unique] = true
	return unique
}

// maxNameBytes leaves room for extensions in the 255 bytes of a file's name.
const maxNameBytes = 200

// legal is a text as the name of a node or a file: letters, digits and . _ - = : @ % only.
func legal(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._-=:@%", r):
			return r
		}
		return '_'
	}, text)
	name = name[:min(len(name), maxNameBytes)]
	if strings.HasSuffix(name, ".condor") { // NAME.condor.sub is what HTCondor makes of a sub-DAG
		name += "_"
	}
	for _, word := range []string{"PARENT", "CHILD", allNodes, "", ".", ".."} {
		if strings.EqualFold(name, word) {
			return "_" + name
		}
	}
	return name
}

// settings are those of task i.
func (w *writer) settings(i int) ([]job.Setting, error) {
	settings, err := job.Settings(&w.wf.Tasks[i], w.nodes[i])
	if err != nil {
		return nil, w.refuse(i, "%w", err)
	}
	return settings, nil
}

// measure finds the shapes of all tasks.
func (w *writer) measure() error {
	files := make(map[string]bool)
	for i := range w.wf.Tasks {
		settings, err := w.settings(i)
		if err != nil {
			return err
		}
		key := shapeOf(&w.wf.Tasks[i], settings)
		s := w.shapes[key]
		if s == nil {
			file := unlike(legal(cmp.Or(w.wf.Tasks[i].Name, "task")), files) + ".sub"
			s = &shape{file: file, settings: settings, varies: make([]bool, len(settings))}
			w.shapes[key], w.order = s, append(w.order, s)
		}
		for k := range settings {
			s.varies[k] = s.varies[k] || settings[k].Value != s.settings[k].Value
		}
	}
	return nil
}

func shapeOf(t *workflow.Task, settings []job.Setting) string {
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
					value = "$(" + set.Macro() + ")"
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

// file writes one file. The writer remembers the first error until it is flushed.
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

// dag writes the .dag.
func (w *writer) dag(out *bufio.Writer) error {
	fmt.Fprintf(out, "SET_JOB_ATTR %s = %s\n", attributeWorkflow, classad.FormatOld(w.wf.Name))
	for _, category := range slices.Sorted(maps.Keys(w.wf.Categories)) {
		fmt.Fprintf(out, "MAXJOBS %s %d\n", category, w.wf.Categories[category])
	}
	for i := range w.wf.Tasks {
		if err := w.node(out, i); err != nil {
			return err
		}
	}
	for i := range w.wf.Tasks {
		if c := w.wf.Tasks[i].Control; c != nil && c.Final {
			continue
		}
		if parents := w.wf.Graph.Parents(i); len(parents) > 0 {
			_, _ = out.WriteString("PARENT")
			for _, p := range parents {
				_, _ = out.WriteString(" " + w.nodes[p])
			}
			fmt.Fprintf(out, " CHILD %s\n", w.nodes[i])
		}
	}
	return nil
}

// node writes what the .dag says of a task, but for its parents.
func (w *writer) node(out *bufio.Writer, i int) error {
	settings, err := w.settings(i)
	if err != nil {
		return err
	}
	t, node := &w.wf.Tasks[i], w.nodes[i]
	s := w.shapes[shapeOf(t, settings)]
	c := cmp.Or(t.Control, &workflow.Control{})
	word, done := "JOB", ""
	if c.Final {
		word = "FINAL"
	}
	if c.Done {
		done = " DONE"
	}
	fmt.Fprintf(out, "%s %s %s%s\n", word, node, s.file, done)
	begun := false
	for k, set := range settings {
		if !s.varies[k] {
			continue
		}
		if !begun {
			_, _ = out.WriteString("VARS " + node)
			begun = true
		}
		fmt.Fprintf(out, ` %s="%s"`, set.Macro(), strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(set.Value))
	}
	if begun {
		_ = out.WriteByte('\n')
	}
	writeControl(out, node, t.Retries, c)
	return nil
}

// writeControl writes what the .dag says of when and whether a node runs. DAGMan refuses retries and the priority of a
// FINAL node here; its submit description has them.
func writeControl(out *bufio.Writer, node string, retries *int, c *workflow.Control) {
	if retries != nil && !c.Final {
		fmt.Fprintf(out, "RETRY %s %d", node, *retries)
		if c.UnlessExit != 0 {
			fmt.Fprintf(out, " UNLESS-EXIT %d", c.UnlessExit)
		}
		_ = out.WriteByte('\n')
	}
	if c.Priority != 0 && !c.Final {
		fmt.Fprintf(out, "PRIORITY %s %d\n", node, c.Priority)
	}
	if c.Category != "" {
		fmt.Fprintf(out, "CATEGORY %s %s\n", node, c.Category)
	}
	for _, s := range []struct {
		kind   string
		script *workflow.Script
	}{{"PRE", c.Pre}, {"POST", c.Post}, {"HOLD", c.Hold}} {
		if s.script == nil {
			continue
		}
		_, _ = out.WriteString("SCRIPT ")
		if s.script.DeferStatus != 0 {
			fmt.Fprintf(out, "DEFER %d %d ", s.script.DeferStatus, int(s.script.DeferAfter.Seconds()))
		}
		fmt.Fprintf(out, "%s %s %s\n", s.kind, node, strings.Join(s.script.Argv, " "))
	}
	if c.PreSkip != 0 {
		fmt.Fprintf(out, "PRE_SKIP %s %d\n", node, c.PreSkip)
	}
	if c.Abort != nil {
		fmt.Fprintf(out, "ABORT-DAG-ON %s %d", node, c.Abort.Exit)
		if c.Abort.Return != nil {
			fmt.Fprintf(out, " RETURN %d", *c.Abort.Return)
		}
		_ = out.WriteByte('\n')
	}
}
