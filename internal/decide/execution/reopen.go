package execution

import (
	"slices"

	"github.com/corral-pilot/corral/workflow/dag"
)

// countMembers counts the members of a scope that begins.
func countMembers(c *control, s int32) {
	sc := &c.scopes[s]
	sc.failed, sc.code, sc.closing, sc.abort = 0, 0, false, nil
	countOpen(c, s)
}

// countOpen counts the members of a scope that are not over.
func countOpen(c *control, s int32) {
	sc := &c.scopes[s]
	sc.open, sc.last = 0, 0
	first, end := c.plan.scope.tasksIn(s)
	if c.plan.scope.inside == nil {
		n := c.frontier.nodes.Counts()
		sc.open = int32(n.Waiting + n.Ready)
		return
	}
	for i := first; i < end; i++ {
		if st := c.frontier.state(i); c.plan.scope.around(i) != s || st > dag.Ready {
			continue
		}
		if c.plan.scope.rules(i).Final {
			sc.last++
		} else {
			sc.open++
		}
	}
	for k := s + 1; int(k) < len(c.scopes); k++ {
		if c.plan.scope.outer[k] == s && c.scopes[k].stage != stageOver {
			sc.open++
		}
	}
}

// reopen gives all of a scope that is not done another chance, its final tasks as well.
func reopen(c *control, s int32) {
	var again []int32 // scopes
	for k := s; int(k) < len(c.scopes); k++ {
		failed := k != s && c.frontier.nodes.State(c.plan.scope.end(k)) >= dag.Failed
		if k == s || failed && c.plan.scope.isIn(k, s) && !sealed(c, k, s) {
			again = append(again, k)
		}
	}
	for _, k := range again {
		if k != 0 {
			c.frontier.nodes.Reopen(c.plan.scope.begin(k))
			c.frontier.nodes.Reopen(c.plan.scope.end(k))
			c.scopes[k].unit = unit{}
			if k != s {
				c.scopes[k].tries = 0
			}
		}
	}
	for k := s; int(k) < len(c.scopes); k++ {
		if !c.plan.scope.isIn(k, s) {
			continue
		}
		if c.scopes[k].stage != stageOver && !slices.Contains(again, k) {
			again = append(again, k) // the run was cancelled before this one was over, or tasks before it began
		}
		unclose(c, k)
	}
	var tasks []int32
	first, end := c.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if reopenTask(c, i, s) {
			tasks = append(tasks, i)
		}
	}
	failedIn := func(i int) bool { return int32(i) >= first && int32(i) < end }
	c.attempts.tally.failed = slices.DeleteFunc(c.attempts.tally.failed, failedIn)
	c.broken = slices.DeleteFunc(c.broken, func(k int32) bool { return slices.Contains(again, k+1) })
	for _, k := range slices.Backward(again) {
		countMembers(c, k)
	}
	loosen(c, tasks)
	c.enterAll(s)
	c.check(s)
}

// loosen lets tasks that were reopened be released, at once or when they wait no longer.
func loosen(c *control, tasks []int32) {
	if c.frontier.outer != nil {
		c.frontier.gather(c.held)
		return
	}
	for _, i := range tasks {
		c.frontier.more(i, c.held(i))
	}
}

// unclose lets the final tasks of a scope that are not over wait for the others again.
func unclose(c *control, s int32) {
	if !c.scopes[s].closing {
		return
	}
	c.scopes[s].closing = false
	first, end := c.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if c.plan.scope.rules(i).Final && c.plan.scope.around(i) == s && c.frontier.state(i) <= dag.Ready {
			c.frontier.more(i, true)
		}
	}
}

// sealed reports whether a scope within s, or one between the two, is done all the same.
func sealed(c *control, k, s int32) bool {
	for ; k != s; k = c.plan.scope.outer[k] {
		if c.frontier.nodes.State(c.plan.scope.end(k)) == dag.Done {
			return true
		}
	}
	return false
}

// reopenTask reopens a task that failed or was skipped, or is final, unless the subworkflow that it is in is done.
func reopenTask(c *control, i, s int32) bool {
	if sealed(c, c.plan.scope.around(i), s) {
		return false
	}
	switch st := c.frontier.state(i); {
	case st == dag.Failed, st == dag.Done && c.plan.scope.rules(i).Final:
		c.attempts.renew(i)
	case st != dag.Skipped:
		return false
	}
	c.frontier.nodes.Reopen(int(i))
	if u := c.units[i]; u != nil {
		*u = unit{stage: c.plan.scope.first(i)}
	}
	return true
}
