package dagman

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// check refuses properties of the workflow that a .dag cannot represent, apart from the commands and files of its
// tasks.
func (w *writer) check() error {
	if !oneLine(w.wf.Name) {
		return corral.Errorf(corral.Unsatisfiable, "DAGMan's format cannot hold the name %q", w.wf.Name)
	}
	for category := range w.wf.Categories {
		if name, _ := w.local(category, w.home(category)); !plainWord(name) {
			return corral.Errorf(corral.Unsatisfiable, "DAGMan's format cannot hold the category %q", category)
		}
	}
	for i := range w.wf.Tasks {
		t := &w.wf.Tasks[i]
		if err := w.checkControl(t.Control, t.Retries, w.in[i]); err != nil {
			return w.refuse(i, "%w", err)
		}
	}
	for k := range w.wf.Subworkflows {
		if s := &w.wf.Subworkflows[k]; s.Job && (s.Control != nil || s.Retries != nil) {
			return w.refuse(s.First, "the control of subworkflow %q as a whole", s.Name)
		}
	}
	for k := range w.parts {
		if err := w.checkSubDAG(&w.parts[k]); err != nil {
			return err
		}
		if err := w.checkFinal(k); err != nil {
			return err
		}
	}
	return nil
}

// oneLine reports whether a name can be the value of an attribute in a .dag.
func oneLine(name string) bool {
	return !strings.ContainsAny(name, "\n\r\x00") && !strings.HasSuffix(name, `\`)
}

// checkSubDAG refuses properties of a sub-DAG that no statement can express.
func (w *writer) checkSubDAG(p *part) error {
	if p.Sub == nil {
		return nil
	}
	if !oneLine(p.Sub.Name) {
		return w.refuse(p.First, "the name %q of a sub-DAG", p.Sub.Name)
	}
	err := w.checkControl(p.Sub.Control, p.Sub.Retries, p.Outer)
	if c := p.Sub.Control; err == nil && c != nil && (c.Noop || c.Final || c.Priority != 0 || c.Label != "") {
		err = errors.New("a priority, a label, noop or final")
	}
	if err != nil {
		return w.refuse(p.First, "%w of sub-DAG %q as a whole", err, p.Sub.Name)
	}
	return nil
}

// checkFinal refuses the final tasks of a part, unless there is only one and it comes after all other tasks of the
// part, like a FINAL node.
func (w *writer) checkFinal(k int) error {
	final := none
	for _, item := range w.parts[k].Items {
		if item < 0 || !isFinal(&w.wf.Tasks[item]) {
			continue
		}
		if final != none {
			return w.refuse(item, "a second final task")
		}
		final = item
	}
	if final == none {
		return nil
	}
	within := w.parts[k]
	hasChild := func(i int) bool { // whether a task has a child in the part
		return slices.ContainsFunc(w.wf.Graph.Children(i), func(c int) bool {
			return within.First <= c && c < within.End && c != final
		})
	}
	if hasChild(final) {
		return w.refuse(final, "children of a final task")
	}
	parents := w.wf.Graph.Parents(final)
	for i := within.First; i < within.End; i++ {
		last := i != final && !hasChild(i)
		if _, parent := slices.BinarySearch(parents, i); parent != last {
			return w.refuse(final, "a final task that does not come after exactly the last ones")
		}
	}
	return nil
}

// checkControl returns an error for a property of a task or a sub-DAG that no statement in part k can express.
func (w *writer) checkControl(c *workflow.Control, retries *int, k int) error {
	if c == nil {
		return nil
	}
	name, ok := w.local(c.Category, k)
	switch {
	case c.Final && (c.Done || c.Category != "" || c.Abort != nil || c.UnlessExit != 0):
		return errors.New("a final task with a category, an abort, an exit status that prevents retries, or done")
	case c.UnlessExit != 0 && retries == nil:
		return errors.New("an exit status that prevents retries without a number of retries")
	case !ok:
		return fmt.Errorf("the category %q in sub-DAG %q, because its name does not begin with %q",
			c.Category, w.parts[k].Sub.Name, w.parts[k].Sub.Name+"+")
	case c.Category != "" && !plainWord(name):
		return fmt.Errorf("the category %q", c.Category)
	}
	for _, s := range []*workflow.Script{c.Pre, c.Post, c.Hold} {
		if s == nil {
			continue
		}
		if s.Dir != "" || len(s.Argv) == 0 || s.DeferAfter%1e9 != 0 || s.DeferStatus == 0 && s.DeferAfter != 0 {
			return errors.New("a script in a folder, without a name, or deferred by a fraction of a second")
		}
		for _, word := range s.Argv {
			if !plainWord(word) {
				return fmt.Errorf("the script's argument %q", word)
			}
		}
	}
	return nil
}

// plainWord reports whether s is a single word of a .dag.
func plainWord(s string) bool {
	return s != "" && s[0] != '"' && !strings.HasSuffix(s, `\`) &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
