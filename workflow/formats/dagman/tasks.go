package dagman

import (
	"cmp"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// addTasks adds the tasks of all nodes, in the order of the nodes.
func (r *reader) addTasks() error {
	r.files.values = min(r.files.most, freeBytes+maxPerByte*(r.files.most-r.files.left))
	r.builder.Grow(len(r.nodes))
	for i := range r.nodes {
		n := &r.nodes[i]
		n.first = len(r.wf.Tasks)
		if n.sub == nil {
			if err := r.addTasksOf(n, i+1); err != nil {
				return err
			}
		}
		n.end = len(r.wf.Tasks)
		n.vars, n.append = nil, nil // these fields occupy a large part of the nodes' memory
	}
	if r.absent > 0 {
		r.builder.Warn(r.absentAt, "submit description %s: no such file; its nodes have no command%s",
			r.absentFile, workflow.AndMore(r.absent-1))
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		s := workflow.Subworkflow{Name: n.name, First: n.first, End: n.end, Job: n.sub == nil, Control: n.whole()}
		if n.sub != nil {
			s.Name = strings.TrimSuffix(n.sub.prefix, "+") // the sub-DAG's file may change its name
			n.end = r.nodes[n.sub.end-1].end
		}
		s.End = n.end
		// Otherwise each of several jobs has its own retries: no job is repeated because another one has failed.
		if n.sub != nil || n.scripted() {
			s.Retries = n.retries
		}
		if n.sub != nil || n.end > n.first+1 {
			r.wf.Subworkflows = append(r.wf.Subworkflows, s)
		}
	}
	return nil
}

// addTasksOf adds the tasks of the jobs of a node; number is the number of the node, from 1.
func (r *reader) addTasksOf(n *node, number int) error {
	d, err := r.describe(n)
	if err != nil {
		return err
	}
	if n.plain() || d == nil {
		return r.addPlain(n)
	}
	given := submit.Given{
		Vars: append([]submit.Var{
			{Name: "JOB", Value: n.local()}, {Name: "RETRY", Value: "0"},
			{Name: "DAG_STATUS", Value: "0"}, {Name: "FAILED_COUNT", Value: "0"},
		}, n.vars...),
		Append:  n.append,
		Cluster: number,
		Most:    r.maxTasks,
		Taken:   min(len(r.wf.Tasks), r.maxTasks-1), // the Builder refuses any further task, with the node's place
		Left:    &r.files.values,
		Open:    r.sourceIn(n.dir),
	}
	var tasks []workflow.Task
	err = d.Each(given, func(j *submit.Proc) error {
		t, err := r.jobs.task(jobNode{Name: n.name, Dir: n.dir}, j)
		tasks = append(tasks, t)
		return err
	})
	if err != nil {
		return err
	}
	for step := range tasks {
		t := &tasks[step]
		if len(tasks) > 1 {
			t.ID += "." + strconv.Itoa(step)
		}
		n.controlTask(t, len(tasks) > 1)
		if err := r.builder.Add(*t, n.at); err != nil {
			return err
		}
	}
	if len(tasks) == 0 {
		return n.at.Errorf("node %q: its submit description queues no jobs", n.name)
	}
	return nil
}

// addPlain adds the task of a node without a submit description. The task does nothing, or its command is not known.
func (r *reader) addPlain(n *node) error {
	t := workflow.Task{ID: n.name}
	if n.file != "" {
		t.Name = strings.TrimSuffix(path.Base(n.file), path.Ext(n.file))
	}
	if n.skipped() {
		t.Name, t.Argv, t.Instant = "noop", []string{"true"}, true
	}
	n.controlTask(&t, false)
	return r.builder.Add(t, n.at)
}

// describe returns the submit description of a node, or nil if the description is irrelevant or missing.
func (r *reader) describe(n *node) (*submit.Description, error) {
	if n.plain() || n.description != nil {
		return n.description, nil
	}
	if d := n.scope.descriptions[n.file]; d != nil {
		return d, nil
	}
	name := submit.Join(n.dir, n.file)
	key := n.dir + "\x00" + name
	d, ok := r.parsed[key]
	if ok {
		return d, nil
	}
	lines, closer, err := r.files.open(name)
	switch {
	case err == nil:
		defer closer.Close()
		if d, err = submit.Parse(lines, r.sourceIn(n.dir)); err != nil {
			return nil, err
		}
		r.builder.Warnings = append(r.builder.Warnings, d.Warnings...)
	case errors.Is(reason(err), errNoFile):
		if r.absent == 0 {
			r.absentAt, r.absentFile = n.at, r.files.called(name)
		}
		r.absent++
	default:
		return nil, n.at.Errorf("submit description %s: %w", r.files.called(name), reason(err))
	}
	r.parsed[key] = d
	return d, nil
}

// whole returns the control of a node with several tasks as a whole, without the settings that apply to the single
// tasks.
func (n *node) whole() *workflow.Control {
	if n.control == nil {
		return nil
	}
	c := *n.control
	c.Noop, c.Final, c.Priority, c.UnlessExit = false, false, 0, 0
	if n.sub != nil || n.scripted() {
		c.UnlessExit = n.control.UnlessExit
	}
	if c == (workflow.Control{}) {
		return nil
	}
	return &c
}

// controlTask sets the control of a task of the node. If the node has several tasks, the control contains only the
// settings that apply to each of them.
func (n *node) controlTask(t *workflow.Task, several bool) {
	if t.Retries == nil || n.retries != nil {
		t.Retries = n.retries
	}
	if several && n.scripted() {
		t.Retries = new(0)
	}
	var c workflow.Control
	if n.control != nil {
		c = *n.control
	}
	if several {
		c.Category, c.Pre, c.PreSkip, c.Post, c.Hold, c.Abort = "", nil, 0, nil, nil, nil
	}
	if c.Label = t.Label(); t.Control != nil {
		c.Noop = c.Noop || t.Control.Noop
		c.Priority = cmp.Or(c.Priority, t.Control.Priority)
	}
	for s := n.scope; s != nil; s = s.outer {
		if s.holder == none {
			continue
		}
		if around := n.scope.r.nodes[s.holder].control; around != nil {
			c.Priority += around.Priority
			c.Done = c.Done || around.Done
		}
	}
	t.Control = nil
	if c != (workflow.Control{}) {
		t.Control = &c
	}
}

// addEdges adds the edges between tasks that follow from the edges between nodes.
func (r *reader) addEdges() error {
	edges := 0
	for _, e := range r.edges {
		parent, child := &r.nodes[e[0]], &r.nodes[e[1]]
		if edges += (parent.end - parent.first) * (child.end - child.first); edges > maxEdges {
			return child.at.Errorf("the DAG has more than %d edges", maxEdges)
		}
		for p := parent.first; p < parent.end; p++ {
			for c := child.first; c < child.end; c++ {
				r.builder.Edge(r.wf.Tasks[p].ID, r.wf.Tasks[c].ID, child.at)
			}
		}
	}
	r.nodes, r.edges, r.jobs = nil, nil, nil // building the graph requires as much memory
	return nil
}
