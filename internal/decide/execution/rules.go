package execution

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Rules hold a workflow's conditions for the start of a unit, and the consequences of its end. A unit is a task or a
// subworkflow. Rules may be shared.
type Rules struct {
	Priority   int  // units with a larger one start first
	Category   int  // its index in Spec.Limits plus 1; 0: no category with a limit
	Done       bool // of a subworkflow: it and its tasks were done before
	Final      bool // of a task: it runs after all others of its scope, and decides whether the scope succeeded
	Pre, Post  *Script
	PreSkip    int   // exit status of Pre with which the unit is done at once; 0: none
	UnlessExit []int // exit statuses with which it is not retried
	Abort      *Abort
}

// A Script runs on corrald's host: either before a unit, which fails if the script fails, or after it, to decide
// whether the unit succeeded.
type Script struct {
	DeferStatus int // exit status with which it is run again; 0: none
	DeferAfter  time.Duration
}

// An Abort ends the scope of a unit as soon as the unit ends with the given exit status.
type Abort struct {
	Exit   int
	Return *int // exit status of the scope; nil: the unit's
}

// A SubSpec is a subworkflow: tasks First to End-1, including those of inner subworkflows.
type SubSpec struct {
	Name       string
	First, End int
	Retries    int  // of the subworkflow: all units in it that are not done begin again
	Job        bool // its tasks are the processes of one job; its exit status is that of the first one that failed
	Rules      *Rules
}

var noRules Rules

// A scoping is the tree of scopes. Scope 0 is the whole workflow; scope k+1 is subworkflow k. A subworkflow has two
// nodes in addition to those of its tasks: its beginning, after which its tasks may run, and its end, for which its
// children wait. The numbers of units are those of the tasks, followed by the subworkflows. The numbers of nodes are
// those of the tasks, followed by the beginning and the end of each subworkflow.
type scoping struct {
	spec   *Spec
	nodes  *dag.Graph
	inside []int32 // :: task → the innermost scope; nil: there is only one
	outer  []int32 // :: scope → the scope around it
}

// Check returns an error if subworkflows or rules contradict each other. New panics with such a spec.
func (s *Spec) Check() error {
	_, err := newScoping(s)
	return err
}

// newScoping determines the subworkflow of each task, and refuses specs without an order: a final task with children,
// overlapping subworkflows, and subworkflows that wait for each other. Each subworkflow gets two additional nodes, for
// its beginning and its end. The graph of a workflow without subworkflows remains unchanged.
func newScoping(s *Spec) (scoping, error) {
	c := scoping{spec: s, nodes: s.Graph, outer: make([]int32, len(s.Subs)+1)}
	plain := len(s.Subs) == 0
	for i := range s.Tasks {
		r := c.rules(int32(i))
		plain = plain && !r.Final
		if r.Final && len(s.Graph.Children(i)) > 0 {
			return c, fmt.Errorf("final task %q has children", s.Tasks[i].ID)
		}
	}
	if plain {
		return c, nil
	}
	c.inside = make([]int32, len(s.Tasks))
	for k, sub := range s.Subs {
		if sub.First < 0 || sub.First >= sub.End || sub.End > len(s.Tasks) {
			return c, fmt.Errorf("subworkflow %q has tasks %d to %d of %d", sub.Name, sub.First, sub.End, len(s.Tasks))
		}
		around := c.inside[sub.First]
		c.outer[k+1] = around
		for i := sub.First; i < sub.End; i++ {
			if c.inside[i] != around {
				return c, fmt.Errorf("subworkflow %q overlaps another one", sub.Name)
			}
			c.inside[i] = int32(k + 1)
		}
	}
	for k := range s.Subs {
		if err := c.checkCategory(int32(k + 1)); err != nil {
			return c, err
		}
	}
	var err error
	c.nodes, err = dag.New(len(s.Tasks)+2*len(s.Subs), c.edges())
	if cycle, ok := errors.AsType[*dag.CycleError](err); ok {
		return c, fmt.Errorf("the order of the subworkflows is a %w", cycle)
	}
	return c, err
}

// checkCategory refuses a subworkflow with a task that waits for the subworkflow itself to end.
func (c *scoping) checkCategory(s int32) error {
	sub := &c.spec.Subs[s-1]
	mine := c.rules(c.unitOf(s)).Category
	for i := sub.First; mine != 0 && i < sub.End; i++ {
		for unit, at := int32(i), c.around(int32(i)); at != c.outer[s]; unit, at = c.unitOf(at), c.outer[at] {
			if unit != c.unitOf(s) && c.rules(unit).Category == mine {
				return fmt.Errorf("task %q has the same category as its subworkflow %q",
					c.spec.Tasks[i].ID, sub.Name)
			}
		}
	}
	return nil
}

// edges returns the edges between the nodes. Units that are done or final do not wait.
func (c *scoping) edges() (edges [][2]int) {
	to := func(unit int32, from, node int) {
		if r := c.rules(unit); !c.done(unit) && !(r.Final && from < len(c.spec.Tasks)) {
			edges = append(edges, [2]int{from, node})
		}
	}
	for k := range c.spec.Subs {
		s := int32(k + 1)
		to(c.unitOf(s), c.begin(s), c.end(s))
		if c.outer[s] != 0 {
			to(c.unitOf(s), c.begin(c.outer[s]), c.begin(s))
		}
	}
	for i := range c.spec.Tasks {
		child := int32(i)
		if s := c.around(child); s != 0 {
			to(child, c.begin(s), i)
		}
		for _, p := range c.spec.Graph.Parents(i) {
			if from, unit, node := c.between(int32(p), child); !c.rules(child).Final {
				to(unit, from, node)
			}
		}
	}
	return edges
}

// between returns the nodes that represent an edge between two tasks: the end of the outermost subworkflow that
// contains only the parent, and the beginning of the one that contains only the child, which is unit.
func (c *scoping) between(parent, child int32) (from int, unit int32, to int) {
	has := make(map[int32]bool)
	for s := c.around(parent); s != 0; s = c.outer[s] {
		has[s] = true
	}
	has[0] = true
	unit, to = child, int(child)
	common := c.around(child)
	for ; !has[common]; common = c.outer[common] {
		unit, to = c.unitOf(common), c.begin(common)
	}
	from = int(parent)
	for s := c.around(parent); s != common; s = c.outer[s] {
		from = c.end(s)
	}
	return from, unit, to
}

// rules returns the rules of a unit.
func (c *scoping) rules(unit int32) *Rules {
	r := &noRules
	if n := len(c.spec.Tasks); int(unit) < n {
		if own := c.spec.Tasks[unit].Rules; own != nil {
			r = own
		}
	} else if own := c.spec.Subs[int(unit)-n].Rules; own != nil {
		r = own
	}
	return r
}

// done reports whether a unit was done before.
func (c *scoping) done(unit int32) bool {
	if c.isTask(unit) {
		return c.spec.Tasks[unit].Done
	}
	return c.rules(unit).Done
}

// around returns the innermost scope that a task is in.
func (c *scoping) around(task int32) int32 {
	if c.inside == nil {
		return 0
	}
	return c.inside[task]
}

// scopeOf returns the scope that a unit is a member of.
func (c *scoping) scopeOf(unit int32) int32 {
	if n := len(c.spec.Tasks); int(unit) >= n {
		return c.outer[int(unit)-n+1]
	}
	return c.around(unit)
}

func (c *scoping) isTask(unit int32) bool { return int(unit) < len(c.spec.Tasks) }

// unitOf, begin and end return the numbers of a subworkflow's unit and nodes; scopeOfUnit and scopeAt return the
// subworkflow of a unit and of a node.
func (c *scoping) unitOf(scope int32) int32     { return int32(len(c.spec.Tasks)) + scope - 1 }
func (c *scoping) scopeOfUnit(unit int32) int32 { return unit - int32(len(c.spec.Tasks)) + 1 }
func (c *scoping) begin(scope int32) int        { return len(c.spec.Tasks) + 2*int(scope-1) }
func (c *scoping) end(scope int32) int          { return c.begin(scope) + 1 }
func (c *scoping) scopeAt(node int) int32       { return int32((node-len(c.spec.Tasks))/2 + 1) }

// isBegin reports whether a node that is not a task is the beginning of a subworkflow.
func (c *scoping) isBegin(node int) bool { return (node-len(c.spec.Tasks))%2 == 0 }

// tasksIn returns the range of the tasks of a scope.
func (c *scoping) tasksIn(scope int32) (first, end int32) {
	if scope == 0 {
		return 0, int32(len(c.spec.Tasks))
	}
	s := &c.spec.Subs[scope-1]
	return int32(s.First), int32(s.End)
}

// isIn reports whether scope k is scope s, or in it.
func (c *scoping) isIn(k, s int32) bool {
	for ; k != s; k = c.outer[k] {
		if k == 0 {
			return false
		}
	}
	return true
}

// members yields the tasks of a scope that are not in an inner scope.
func (c *scoping) members(scope int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, end := c.tasksIn(scope); i < end; i++ {
			if c.around(i) == scope && !yield(i) {
				return
			}
		}
	}
}

// finals yields the final tasks of a scope.
func (c *scoping) finals(scope int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, end := c.tasksIn(scope); i < end; i++ {
			if c.rules(i).Final && c.around(i) == scope && !yield(i) {
				return
			}
		}
	}
}

func (c *scoping) retries(number int32) int {
	if c.isTask(number) {
		return c.spec.Tasks[number].Retries
	}
	return c.spec.Subs[int(number)-len(c.spec.Tasks)].Retries
}

// ExitStatuses parses a list of exit statuses, as in "3,64".
func ExitStatuses(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		if word == "" && list == "" {
			return nil, nil
		}
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 255 {
			return nil, corral.ErrorAt(corral.Invalid, "retry_unless", "%q is not an exit status from 1 to 255", word)
		}
		all = append(all, n)
	}
	return all, nil
}
