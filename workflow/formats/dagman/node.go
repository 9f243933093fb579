package dagman

import (
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A node is one that a JOB, FINAL or SUBDAG statement defines.
type node struct {
	name        string // with those of the splices that it is in
	file        string // its submit description, or its sub-DAG's file; "": it is inline, or a sub-DAG is not there
	description *submit.Description
	dir         string // where it is submitted from, relative to the .dag's folder
	at          workflow.Place
	scope       *scope
	sub         *scope // the sub-DAG; nil: it is a job, or the sub-DAG is not there

	vars, append []submit.Var
	retries      *int
	control      *workflow.Control

	hasParent, hasChild bool
	first, end          int // its tasks
}

// controls returns what is said of when and whether the node runs, to say more.
func (n *node) controls() *workflow.Control {
	if n.control == nil {
		n.control = &workflow.Control{}
	}
	return n.control
}

// isFinal reports whether the node is a FINAL one.
func (n *node) isFinal() bool { return n.control != nil && n.control.Final }

// local is the node's name in its own DAG: with those of the splices that it is in, and not of sub-DAGs.
func (n *node) local() string {
	s := n.scope
	for s.isSplice() {
		s = s.outer
	}
	return strings.TrimPrefix(n.name, s.prefix)
}

// scripted reports whether the node has scripts: then it is tried again with them, as a whole.
func (n *node) scripted() bool {
	return n.control != nil && (n.control.Pre != nil || n.control.Post != nil)
}

// skipped reports whether the node's file is of no interest, because nothing of it would run.
func (n *node) skipped() bool { return n.control != nil && n.control.Noop }

// plain reports whether the node has no submit description: it is skipped, or a sub-DAG that is not there.
func (n *node) plain() bool { return n.skipped() || n.file == "" && n.description == nil }

// define adds a node to the scope.
func (s *scope) define(n node, name string) error {
	switch {
	case len(s.prefix)+len(name) > maxPath || len(n.dir) > maxPath:
		return wrong("the name or the folder of the node has more than %d bytes", maxPath)
	case strings.Contains(name, "+"):
		return wrong("the name %q has a plus sign, which stands between the names of splices and nodes", name)
	case strings.EqualFold(name, "PARENT"), strings.EqualFold(name, "CHILD"), strings.EqualFold(name, allNodes):
		return wrong("%q is a word of DAGMan, and no name", name)
	}
	if err := s.unused(name); err != nil {
		return err
	}
	if len(s.r.nodes) == s.r.maxTasks {
		return n.at.Errorf("the workflow has more than %d tasks", s.r.maxTasks)
	}
	if err := s.r.files.repeat(n.at); err != nil {
		return err
	}
	n.name, n.scope = s.prefix+name, s
	s.nodes[name] = len(s.r.nodes)
	s.r.nodes = append(s.r.nodes, n)
	return nil
}

// unused refuses a name that the scope has given already.
func (s *scope) unused(name string) error {
	if i, ok := s.nodes[name]; ok {
		return wrong("there is another node %q (%s)", name, s.r.nodes[i].at)
	}
	if s.inner[name] != nil {
		return wrong("there is a splice %q", name)
	}
	return nil
}

// allNodes stands for all nodes of a file but its FINAL one, those of splices and sub-DAGs excepted.
const allNodes = "ALL_NODES"

// named calls do for the node that a statement names, or for all of them.
func (s *scope) named(name string, do func(*node) error) error {
	if !strings.EqualFold(name, allNodes) {
		i, err := s.node(name)
		if err != nil {
			return err
		}
		return do(&s.r.nodes[i])
	}
	if !s.over {
		return &unknownError{"node", allNodes}
	}
	for i := s.first; i < s.end; i++ {
		if err := s.r.say(1); err != nil {
			return err
		}
		if n := &s.r.nodes[i]; n.scope == s && !n.isFinal() {
			if err := do(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// say counts what is said of a node by a statement that may be about all of them.
func (r *reader) say(things int) error {
	if r.said += things; r.said > maxSaid*r.maxTasks {
		return wrong("more than %d things are said of single nodes by ALL_NODES", maxSaid*r.maxTasks)
	}
	return nil
}
