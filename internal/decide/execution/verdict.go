package execution

import (
	"slices"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A verdict is how a try of a unit ended.
type verdict struct {
	at      Msec
	unit    int32
	status  int
	done    bool
	unbegun bool // its PRE script failed
	forever bool // it is not to be tried again
	why     string
}

// ended goes on with a task whose process ended by itself.
func (c *control) ended(o *Outcome, at Msec) {
	v := verdict{at: at, unit: o.Task, status: o.status(), done: o.Status == Done, why: o.Reason}
	u := c.units[o.Task]
	if u == nil || c.plan.scope.rules(o.Task).Post == nil {
		c.conclude(v)
		return
	}
	u.stage, u.exit, u.why, u.seq = stagePost, v.status, v.why, o.Seq
	if !v.done {
		c.attempts.notes[o.Task] = v.why
	}
	c.scripts.posts++
	c.scripts.add(o.Task, u)
}

// conclude ends a try of a unit, which is its last or is followed by another.
func (c *control) conclude(v verdict) {
	rules, s := c.plan.scope.rules(v.unit), c.plan.scope.scopeOf(v.unit)
	if a := rules.Abort; a != nil && a.Exit == v.status && c.scopes[s].abort == nil {
		end := &ended{by: v.unit, status: v.status, told: v.status}
		if a.Return != nil {
			end.status = *a.Return
		}
		c.scopes[s].abort = end
		c.aborted = append(c.aborted, s)
		v.forever = true
	}
	v.forever = v.forever || slices.Contains(rules.UnlessExit, v.status)
	if c.plan.scope.isTask(v.unit) {
		c.concludeTask(v)
	} else {
		c.concludeScope(v, v.unit-int32(len(c.plan.Tasks))+1)
	}
}

// concludeTask ends an attempt at a task, with its scripts: the task is done, or is tried again after a wait, or
// has failed for good. One that is tried again begins with its PRE script.
func (c *control) concludeTask(v verdict) {
	i, u := v.unit, c.units[v.unit]
	if v.done {
		if u != nil {
			u.stage = stageOver
		}
		delete(c.attempts.notes, i)
		finishNode(c, int(i))
		c.leave(i)
		return
	}
	if again, wait := c.attempts.fail(v); again {
		if u != nil {
			*u = unit{stage: c.plan.scope.first(i)}
		}
		c.frontier.again(i, v.at, wait)
		return
	}
	if u != nil {
		u.stage = stageOver
	}
	c.fail(v, int(i))
}

// concludeScope ends a round of subworkflow s: it is done, or begins again as a whole, or has failed for good. A
// subworkflow that never began fails by its first node, so that nothing in it is taken for done.
func (c *control) concludeScope(v verdict, s int32) {
	sc := &c.scopes[s]
	switch {
	case v.done:
		sc.stage = stageOver
		c.settle(c.frontier.nodes.Finish(c.plan.scope.end(s)))
		c.leave(v.unit)
	case !v.forever && int(sc.tries) < c.plan.Subs[s-1].Retries:
		sc.tries++
		c.attempts.tally.retries++
		reopen(c, s)
	default:
		sc.stage, sc.why = stageOver, v.why
		c.broken = append(c.broken, s-1)
		if v.unbegun {
			c.fail(v, c.plan.scope.begin(s))
		} else {
			c.fail(v, c.plan.scope.end(s))
		}
	}
}

// fail ends a unit that failed for good, by one of its nodes.
func (c *control) fail(v verdict, node int) {
	sc := &c.scopes[c.plan.scope.scopeOf(v.unit)]
	if sc.failed++; sc.failed == 1 {
		sc.code = v.status
	}
	failNode(c, node)
	c.leave(v.unit)
}

// idle reports whether task i is ready and in no job.
func (c *control) idle(i int32) bool { return c.frontier.state(i) == dag.Ready && c.book.of[i] == nil }

// A Verdict says what the end of an execution means for the workflow. Its parts are in the order in which they came.
type Verdict struct {
	Status int    // the workflow's exit status; 0: it succeeded
	Abort  string // why it was aborted, in a sentence; empty: it was not
	Tasks  []int  // that failed for good, and for which nothing made up
	Subs   []SubFailure
}

// A SubFailure is a subworkflow that failed by a script of its own.
type SubFailure struct {
	Name, Why string
}

// VerdictOf tells of an execution that is done.
func VerdictOf(x *Execution) Verdict {
	c := x.control
	v := Verdict{Status: statusOf(c, 0)}
	final, _ := finalsOf(c, 0)
	for _, i := range c.attempts.tally.failed {
		if countsIn(c, c.plan.scope.around(int32(i))) && !(v.Status == 0 && final) {
			v.Tasks = append(v.Tasks, i)
		}
	}
	for _, k := range c.broken {
		if s := k + 1; countsIn(c, c.plan.scope.outer[s]) && c.scopes[s].failed == 0 {
			v.Subs = append(v.Subs, SubFailure{c.plan.Subs[k].Name, c.scopes[s].why})
		}
	}
	if c.scopes[0].abort != nil && !final {
		v.Abort = aborted(c, 0)
	}
	return v
}

// Kills returns the numbers of jobs that have to be killed, because tasks in them were cancelled or are in what was
// aborted, and forgets them. Some may be over, or never have been assigned.
func Kills(x *Execution) []int64 {
	kills := x.control.kills
	x.control.kills = nil
	return kills
}

// countsIn reports whether a failure in a scope is one of the workflow: no subworkflow around it is done all the same.
func countsIn(c *control, s int32) bool {
	for ; s != 0; s = c.plan.scope.outer[s] {
		if c.frontier.nodes.State(c.plan.scope.end(s)) == dag.Done {
			return false
		}
	}
	return true
}

// statusOf is the exit status of a scope whose members are over, as that of a DAGMan: what its final task says, or what
// aborted it, or 1 if a member failed.
func statusOf(c *control, s int32) int {
	sc := &c.scopes[s]
	final, failed := finalsOf(c, s)
	switch {
	case final && failed:
		return 1
	case final:
		return 0
	case sc.abort != nil:
		return sc.abort.status
	case sc.failed > 0 && s != 0 && c.plan.Subs[s-1].Job && sc.code != 0:
		return sc.code
	case sc.failed > 0:
		return 1
	}
	return 0
}

// finalsOf reports whether a scope has final tasks, and whether one of them failed.
func finalsOf(c *control, s int32) (any, failed bool) {
	first, end := c.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if c.plan.scope.rules(i).Final && c.plan.scope.around(i) == s {
			any, failed = true, failed || c.frontier.state(i) != dag.Done
		}
	}
	return any, failed
}

// passOver ends a unit that is done because its PRE script says so.
func passOver(c *control, number int32) {
	if c.plan.scope.isTask(number) {
		c.attempts.tasks[number].attempt-- // it was not begun
		c.concludeTask(verdict{unit: number, done: true})
		return
	}
	s := number - int32(len(c.plan.Tasks)) + 1
	first, end := c.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		dropTask(c, i, nil)
	}
	for k := s + 1; int(k) < len(c.scopes); k++ {
		if c.plan.scope.isIn(k, s) {
			dropScope(c, k)
		}
	}
	c.frontier.nodes.Finish(c.plan.scope.begin(s))
	c.concludeScope(verdict{unit: number, done: true}, s)
}
