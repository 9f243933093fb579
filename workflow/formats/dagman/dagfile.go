package dagman

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
)

// Attributes of DAGMan's own job in which Write stores the name of the workflow, and the name of a sub-DAG if it
// differs from the name of its node.
const (
	attributeWorkflow = "CorralWorkflow"
	attributeSubDAG   = "CorralSubDAG"
)

// dag writes the .dag of a part.
func (w *writer) dag(out *bufio.Writer, k int) error {
	p := &w.parts[k]
	switch {
	case k == 0:
		fmt.Fprintf(out, "SET_JOB_ATTR %s = %s\n", attributeWorkflow, classad.FormatOld(w.wf.Name))
	case w.parts[p.Outer].prefix+p.node+"+" != p.prefix:
		fmt.Fprintf(out, "SET_JOB_ATTR %s = %s\n", attributeSubDAG, classad.FormatOld(p.Sub.Name))
	}
	for _, category := range slices.Sorted(maps.Keys(w.wf.Categories)) {
		if w.home(category) == k {
			name, _ := w.local(category, k)
			fmt.Fprintf(out, "MAXJOBS %s %d\n", name, w.wf.Categories[category])
		}
	}
	for _, item := range p.Items {
		if item < 0 {
			w.subDAG(out, k, &w.parts[^item])
		} else if err := w.node(out, item); err != nil {
			return err
		}
	}
	for _, item := range p.Items {
		w.parents(out, k, item)
	}
	return nil
}

// parents writes the parents of an item of a part. It writes none for the final task, which comes after all others
// anyway.
func (w *writer) parents(out *bufio.Writer, k, item int) {
	before := slices.Clone(w.before[item])
	if item >= 0 {
		if isFinal(&w.wf.Tasks[item]) {
			return
		}
		for _, p := range w.wf.Graph.Parents(item) {
			if w.in[p] == k {
				before = append(before, p)
			}
		}
	}
	if len(before) == 0 {
		return
	}
	_, _ = out.WriteString("PARENT")
	for _, x := range before {
		_, _ = out.WriteString(" " + *w.nodeOf(x))
	}
	fmt.Fprintf(out, " CHILD %s\n", *w.nodeOf(item))
}

// subDAG writes the statements about a sub-DAG to the .dag of the enclosing part.
func (w *writer) subDAG(out *bufio.Writer, k int, p *part) {
	c := workflow.Control{}
	if p.Sub.Control != nil {
		c = *p.Sub.Control
	}
	done := ""
	if c.Done {
		done = " DONE"
	}
	fmt.Fprintf(out, "SUBDAG EXTERNAL %s %s%s\n", p.node, p.file, done)
	c.Category, _ = w.local(c.Category, k)
	writeControl(out, p.node, p.Sub.Retries, &c)
}

// node writes the statements of a .dag about a task, except its parents.
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
		fmt.Fprintf(out, ` %s="%s"`, set.macro(), strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(set.Value))
	}
	if begun {
		_ = out.WriteByte('\n')
	}
	said := *c
	said.Category, _ = w.local(c.Category, w.in[i])
	writeControl(out, node, t.Retries, &said)
	return nil
}

// writeControl writes the statements that determine whether and when a node runs. DAGMan rejects RETRY and PRIORITY for
// a FINAL node; the node's submit description contains these settings instead.
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
