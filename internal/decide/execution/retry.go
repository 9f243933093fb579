package execution

import (
	"slices"

	"github.com/corral-pilot/corral/workflow/dag"
)

// retry lets tasks that failed for good be tried again, and those that were skipped below them wait for them. Tasks
// that wait to be ended no longer do.
func retry(c *control, tasks []int32) {
	if c.plan.Open {
		retryAdded(c, tasks)
		return
	}
	for _, i := range tasks {
		if i < 0 || int(i) >= len(c.plan.Tasks) {
			continue
		}
		spare(c, i)
		if c.frontier.state(i) == dag.Failed && unretriable(c, i) == "" {
			tryAgain(c, i)
		}
	}
}

// unretriable says why a task that failed cannot be tried again now; "" if it can.
func unretriable(c *control, i int32) string {
	if s := c.plan.scope.around(i); sealed(c, s, 0) {
		return "failed, and its subworkflow is done all the same"
	}
	for s := c.plan.scope.around(i); ; s = c.plan.scope.outer[s] {
		if sc := &c.scopes[s]; sc.stage == stagePost || sc.closing && sc.last > 0 {
			return "cannot be tried again while what runs last, its final task or its POST script, is still to end"
		}
		if s == 0 {
			return ""
		}
	}
}

// tryAgain lets a task that failed be tried again: of the subworkflows around it, if they are over or the workflow was
// aborted, with all else in them that is not done. If something before it failed, too, it is as if skipped.
func tryAgain(c *control, i int32) {
	unit, first, last := i, int(i), int(i) // the nodes of the unit
	for s := c.plan.scope.around(i); s != 0; s = c.plan.scope.outer[s] {
		if c.scopes[s].stage == stageOver {
			unit, first, last = c.plan.scope.unitOf(s), c.plan.scope.begin(s), c.plan.scope.end(s)
		}
	}
	s := c.plan.scope.scopeOf(unit)
	switch {
	case c.scopes[0].abort != nil:
		reopen(c, 0)
		return
	case behindFailure(c, first):
		waive(c, i)
		return
	}
	if sc := &c.scopes[s]; sc.failed > 0 {
		sc.failed--
	}
	var tasks []int32
	if unit == i {
		reopenTask(c, i, s)
		tasks = append(tasks, i)
		c.attempts.tally.failed = slices.DeleteFunc(c.attempts.tally.failed, func(k int) bool { return k == int(i) })
	} else {
		k := unit - int32(len(c.plan.Tasks)) + 1
		c.scopes[k].tries = 0
		reopen(c, k)
	}
	tasks = append(tasks, reopenBelow(c, last)...)
	tasks = append(tasks, reopenFinals(c, s)...)
	for k := range c.scopes {
		if k := int32(k); c.plan.scope.isIn(k, s) {
			countOpen(c, k)
		}
	}
	loosen(c, tasks)
	c.enterAll(s)
	c.check(s)
}

// behindFailure reports whether a node waits for one that failed or was skipped.
func behindFailure(c *control, node int) bool {
	return slices.ContainsFunc(c.plan.scope.nodes.Parents(node), func(p int) bool {
		return c.frontier.nodes.State(p) >= dag.Failed
	})
}

// waive turns a failed task into one that was skipped.
func waive(c *control, i int32) {
	c.attempts.renew(i)
	c.frontier.nodes.Reopen(int(i))
	c.frontier.nodes.Drop(int(i))
	c.attempts.tally.failed = slices.DeleteFunc(c.attempts.tally.failed, func(k int) bool { return k == int(i) })
	if sc := &c.scopes[c.plan.scope.around(i)]; sc.failed > 0 {
		sc.failed--
	}
}

// reopenBelow reopens what was skipped below a node that is over no longer, unless it is below another one that failed.
// It returns the tasks of that.
func reopenBelow(c *control, node int) (tasks []int32) {
	g, nodes := c.plan.scope.nodes, c.frontier.nodes
	below := map[int]bool{node: true}
	for _, at := range g.Order() {
		if !below[at] {
			continue
		}
		if at != node && (nodes.State(at) != dag.Skipped || behindFailure(c, at)) {
			continue
		}
		for _, child := range g.Children(at) {
			below[child] = true
		}
		nodes.Reopen(at)
		switch n := len(c.plan.Tasks); {
		case at == node:
		case at < n:
			if u := c.units[int32(at)]; u != nil {
				*u = unit{stage: c.plan.scope.first(int32(at))}
			}
			tasks = append(tasks, int32(at))
		case (at-n)%2 == 0:
			sc := &c.scopes[(at-n)/2+1]
			*sc = scope{}
		}
	}
	return tasks
}

// reopenFinals lets the final tasks of a scope, which have run, run again when the others are over. It returns them.
func reopenFinals(c *control, s int32) (tasks []int32) {
	sc := &c.scopes[s]
	if !sc.closing {
		return nil
	}
	sc.closing = false
	first, end := c.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if !c.plan.scope.rules(i).Final || c.plan.scope.around(i) != s {
			continue
		}
		if c.frontier.state(i) == dag.Failed && sc.failed > 0 {
			sc.failed--
		}
		if reopenTask(c, i, s) {
			tasks = append(tasks, i)
		}
		c.attempts.tally.failed = slices.DeleteFunc(c.attempts.tally.failed, func(k int) bool { return k == int(i) })
	}
	return tasks
}
