package dagman

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// A Rescue is the contents of a rescue file, which lists the nodes of a .dag that were done when its run stopped.
// DAGMan reads the file after the .dag and submits only the other nodes.
//
// The file is a partial rescue file, the kind that DAGMan writes today. Comments contain the data for which DAGMan has
// no statements: the location of the files that the nodes wrote, because each run has a directory of its own, and the
// done nodes of unfinished sub-DAGs, because DAGMan runs each sub-DAG separately and keeps separate records of it.
type Rescue struct {
	DAG       string // name of the .dag file
	CreatedAt time.Time
	Nodes     int      // number of nodes of the .dag
	Done      []string // names of nodes
	Failed    []string // names of nodes
	Inner     []string // full names of the done nodes of sub-DAGs that are not done as a whole
	Data      string   // the folder of the files that the nodes wrote; "": the folder of the .dag
}

// MaxRescue is the highest number of a rescue file.
const MaxRescue = 999

// RescueName returns the name of the rescue file of a .dag with the given number.
func RescueName(dag string, number int) string { return fmt.Sprintf("%s.rescue%03d", dag, number) }

// RescueNumber returns the number of a rescue file of a .dag, or 0 if name is not the name of such a file. Neither name
// may contain folders.
func RescueNumber(dag, name string) int {
	digits, ok := strings.CutPrefix(name, dag+".rescue")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || len(digits) != 3 || n < 1 {
		return 0
	}
	return n
}

// These are the prefixes of the comments that only Corral reads.
const (
	dataComment  = "# Corral data: "
	innerComment = "# Corral done: "
)

// RescueOf returns the done and failed nodes of a workflow that was read from a .dag. A node with several jobs is done
// once all of its jobs are done; a FINAL node never counts as done.
func RescueOf(wf *workflow.Workflow, done, failed func(task int) bool) Rescue {
	r := Rescue{}
	all := func(first, end int, is func(int) bool) bool {
		for i := first; i < end; i++ {
			if !is(i) {
				return false
			}
		}
		return true
	}
	eachNode(wf, 0, len(wf.Tasks), 0, func(n unit) bool {
		outer := n.depth == 0
		switch isDone := all(n.first, n.end, done) && !n.final; {
		case isDone && outer:
			r.Done = append(r.Done, n.name)
		case isDone:
			r.Inner = append(r.Inner, n.name)
		case outer && !all(n.first, n.end, func(i int) bool { return !failed(i) }):
			r.Failed = append(r.Failed, n.name)
		}
		if outer {
			r.Nodes++
		}
		return !all(n.first, n.end, done) // visit the nodes of an unfinished sub-DAG
	})
	return r
}

// A unit is one node with the range of its tasks.
type unit struct {
	name       string
	first, end int
	depth      int // number of enclosing sub-DAGs
	final      bool
}

// eachNode calls fn for each node to which the given tasks belong. If fn returns true for a sub-DAG, eachNode also
// calls fn for the nodes inside that sub-DAG.
func eachNode(wf *workflow.Workflow, first, end, depth int, fn func(unit) bool) {
	groups := make(map[int][]workflow.Subworkflow) // subworkflows by their first tasks, outer ones first
	for _, s := range wf.Subworkflows {
		groups[s.First] = append(groups[s.First], s)
	}
	var walk func(first, end, depth int, outer string)
	walk = func(first, end, depth int, outer string) {
		for i := first; i < end; {
			n := unit{wf.Tasks[i].ID, i, i + 1, depth, isFinal(&wf.Tasks[i])}
			for _, s := range groups[i] {
				if s.End <= end && s.Name != outer && (outer == "" || strings.HasPrefix(s.Name, outer+"+")) {
					n.name, n.end = s.Name, s.End
					break
				}
			}
			if fn(n) && strings.HasPrefix(wf.Tasks[i].ID, n.name+"+") {
				walk(n.first, n.end, depth+1, n.name)
			}
			i = n.end
		}
	}
	walk(first, end, depth, "")
}

func isFinal(t *workflow.Task) bool { return t.Control != nil && t.Control.Final }

// Write writes the rescue file. Comments are for users, except those that only Corral reads.
func (r Rescue) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Rescue DAG file, created after running\n#   the %s DAG file\n", comment(r.DAG))
	fmt.Fprintf(b, "# Created %s UTC\n# Rescue DAG version: 2.0.1 (partial)\n#\n",
		r.CreatedAt.UTC().Format("1/2/2006 15:04:05"))
	fmt.Fprintf(b, "# Total number of Nodes: %d\n# Nodes premarked DONE: %d\n# Nodes that failed: %d\n#   ",
		r.Nodes, len(r.Done), len(r.Failed))
	for _, name := range r.Failed {
		fmt.Fprintf(b, "%s,", comment(name))
	}
	fmt.Fprint(b, "<ENDLIST>\n")
	if r.Data != "" {
		fmt.Fprintf(b, "%s%s\n", dataComment, comment(r.Data))
	}
	for _, name := range r.Inner {
		fmt.Fprintf(b, "%s%s\n", innerComment, name)
	}
	fmt.Fprint(b, "\n")
	for _, name := range r.Done {
		fmt.Fprintf(b, "DONE %s\n", name)
	}
	return b.Flush()
}

// comment returns a text in a form that fits on one line.
func comment(text string) string {
	if strings.ContainsAny(text, "\r\n") {
		return strconv.Quote(text)
	}
	return text
}

// ReadRescue reads a rescue file; name is the file name for errors. Errors have kind Invalid and the place FILE:LINE.
// DAGMan can be configured to write a rescue file that contains the whole DAG; ReadRescue refuses such a file, because
// it is a workflow by itself.
func ReadRescue(text io.Reader, name string) (Rescue, error) {
	var r Rescue
	scanner := bufio.NewScanner(text)
	for line := 1; scanner.Scan(); line++ {
		at := workflow.Place{File: name, Line: line}
		data, isData := strings.CutPrefix(scanner.Text(), dataComment)
		inner, isInner := strings.CutPrefix(scanner.Text(), innerComment)
		words := fields{text: scanner.Text()}
		word := words.next()
		switch {
		case isData && !filepath.IsAbs(data):
			return r, at.Errorf("%.100q must be an absolute path", data)
		case isData:
			r.Data = data
		case isInner:
			r.Inner = append(r.Inner, strings.TrimSpace(inner))
		case word == "", strings.HasPrefix(word, "#"):
		case strings.EqualFold(word, "DONE"):
			node := words.next()
			if node == "" || words.next() != "" {
				return r, at.Errorf("DONE needs the name of one node")
			}
			r.Done = append(r.Done, node)
		case strings.EqualFold(word, "RETRY"): // the remaining number of retries; a new run allows all retries again
		case strings.EqualFold(word, "JOB"):
			return r, at.Errorf("this rescue file holds a whole DAG: run it instead of the .dag")
		default:
			return r, at.Errorf("%.40q is not a statement of a rescue file", word)
		}
	}
	if err := scanner.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("a line is too long")
		}
		return r, workflow.Place{File: name}.Errorf("%w", err)
	}
	return r, nil
}

// Mark marks the tasks of the done nodes as done, and returns the names that match no such node: DAGMan only warns of
// such names, because a .dag may have changed after its rescue file was written.
func (r Rescue) Mark(wf *workflow.Workflow) (unknown []string) {
	nodes := make(map[string]unit)
	eachNode(wf, 0, len(wf.Tasks), 0, func(n unit) bool {
		nodes[n.name] = n
		return true
	})
	for _, names := range [][]string{r.Done, r.Inner} {
		for _, name := range names {
			n, ok := nodes[name]
			if !ok || n.final {
				unknown = append(unknown, name)
				continue
			}
			for i := n.first; i < n.end; i++ {
				mark(&wf.Tasks[i])
			}
		}
	}
	return unknown
}

// mark marks a task as done. It copies the Control, because tasks of one node may share it.
func mark(t *workflow.Task) {
	c := workflow.Control{}
	if t.Control != nil {
		c = *t.Control
	}
	c.Done = true
	t.Control = &c
}
