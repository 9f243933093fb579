package dagman

import (
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A node is a node of a DAG, defined by a JOB, FINAL or SUBDAG statement.
type node struct {
	name        string // name, including the names of the enclosing splices
	file        string // file of its submit description or of its sub-DAG; "": inline, or a missing sub-DAG
	description *submit.Description
	dir         string // folder from which the node is submitted, relative to the .dag's folder
	at          workflow.Place
	scope       *scope
	sub         *scope // the node's sub-DAG; nil: the node is a job, or the sub-DAG is missing

	vars, append []submit.Var
	retries      *int
	control      *workflow.Control

	hasParent, hasChild bool
	first, end          int // range of its tasks
}

// controls returns the node's control for modification.
func (n *node) controls() *workflow.Control {
	if n.control == nil {
		n.control = &workflow.Control{}
	}
	return n.control
}

// isFinal reports whether the node is a FINAL node.
func (n *node) isFinal() bool { return n.control != nil && n.control.Final }

// local returns the node's name in its own DAG, which includes the names of enclosing splices, but not those of
// enclosing sub-DAGs.
func (n *node) local() string {
	s := n.scope
	for s.isSplice() {
		s = s.outer
	}
	return strings.TrimPrefix(n.name, s.prefix)
}

// scripted reports whether the node has scripts; if it has, the node is retried as a whole, including its scripts.
func (n *node) scripted() bool {
	return n.control != nil && (n.control.Pre != nil || n.control.Post != nil)
}

// skipped reports whether the node's file is irrelevant, because nothing in that file would run.
func (n *node) skipped() bool { return n.control != nil && n.control.Noop }

// plain reports whether the node has no submit description, because the node is skipped or its sub-DAG is missing.
func (n *node) plain() bool { return n.skipped() || n.file == "" && n.description == nil }

// define adds a node to the scope.
func (s *scope) define(n node, name string) error {
	switch {
	case len(s.prefix)+len(name) > maxPath || len(n.dir) > maxPath:
		return wrong("the name or the folder of the node has more than %d bytes", maxPath)
	case strings.Contains(name, "+"):
		return wrong("the name %q contains a plus sign, which separates the names of splices and nodes", name)
	case strings.EqualFold(name, "PARENT"), strings.EqualFold(name, "CHILD"), strings.EqualFold(name, allNodes):
		return wrong("%q is a reserved word of DAGMan", name)
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

// unused returns an error if the scope already contains the given name.
func (s *scope) unused(name string) error {
	if i, ok := s.nodes[name]; ok {
		return wrong("there is another node %q (%s)", name, s.r.nodes[i].at)
	}
	if s.inner[name] != nil {
		return wrong("there is a splice %q", name)
	}
	return nil
}

// allNodes is the name that stands for all nodes of a file except its FINAL node and the nodes of splices and sub-DAGs.
const allNodes = "ALL_NODES"

// named calls do for the node that a statement names or, if the name is allNodes, for all nodes for which it stands.
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

// say counts settings made by a statement that may apply to all nodes, and returns an error if there are too many.
func (r *reader) say(things int) error {
	if r.said += things; r.said > maxSaid*r.maxTasks {
		return wrong("ALL_NODES makes more than %d settings of single nodes", maxSaid*r.maxTasks)
	}
	return nil
}
