package execution

import (
	"fmt"

	"github.com/corral-pilot/corral/workflow/dag"
)

// leaveAborted ends what runs or waits in the scopes that were aborted, the final tasks aside. The jobs that are over
// by that are to be killed.
func leaveAborted(c *control) {
	var over []int64
	for len(c.aborted) > 0 {
		s := c.aborted[0]
		c.aborted = c.aborted[1:]
		if c.scopes[s].abort == nil || c.scopes[s].stage != stageBody {
			continue // all of it was over by then
		}
		first, end := c.plan.scope.tasksIn(s)
		for i := first; i < end; i++ {
			if c.plan.scope.rules(i).Final && c.plan.scope.around(i) == s {
				continue
			}
			if e := c.book.of[i]; e != nil && e.worker != 0 && c.frontier.state(i) == dag.Ready {
				c.attempts.notes[i] = "killed: " + aborted(c, s)
			}
			over = dropTask(c, i, over)
		}
		for k := s + 1; int(k) < len(c.scopes); k++ {
			if c.plan.scope.outer[k] == 0 && s != 0 {
				break // those in a scope follow it
			}
			if c.plan.scope.isIn(k, s) {
				dropScope(c, k)
			}
		}
		c.scopes[s].open = 0
		c.check(s)
	}
	c.kills, c.over = append(c.kills, over...), append(c.over, over...)
}

// aborted says what aborted a scope.
func aborted(c *control, s int32) string {
	what := "the workflow"
	if s != 0 {
		what = "subworkflow " + c.plan.Subs[s-1].Name
	}
	a := c.scopes[s].abort
	by := ""
	if c.plan.scope.isTask(a.by) {
		by = "task " + c.plan.Tasks[a.by].ID
	} else {
		by = "subworkflow " + c.plan.Subs[int(a.by)-len(c.plan.Tasks)].Name
	}
	return fmt.Sprintf("%s aborted %s with exit status %d", by, what, a.told)
}

// dropTask skips a task, which may be in a job.
func dropTask(c *control, i int32, over []int64) []int64 {
	if e := c.book.of[i]; e != nil {
		if e.worker != 0 {
			c.attempts.next(i)
		}
		over = leave(c, i, over)
	}
	closeUnit(c, i)
	waits := c.frontier.state(i) == dag.Waiting || c.held(i)
	if c.frontier.nodes.Drop(int(i)) && waits {
		c.frontier.dropped(i)
	}
	return over
}

// closeUnit ends a task with scripts, and forgets the one that is to run or runs.
func closeUnit(c *control, i int32) {
	u := c.units[i]
	if u == nil {
		return
	}
	if u.stage == stagePost {
		c.scripts.posts--
	}
	c.scripts.giveUp(i, u)
	u.stage = stageOver
}

// dropScope skips a subworkflow, whose tasks are skipped already.
func dropScope(c *control, s int32) {
	sc := &c.scopes[s]
	if sc.stage == stageBody {
		c.book.use(c.plan.scope.rules(c.plan.scope.unitOf(s)).Category, -1)
	}
	c.scripts.giveUp(c.plan.scope.unitOf(s), &sc.unit)
	sc.stage = stageOver
	c.frontier.nodes.Drop(c.plan.scope.begin(s))
	c.frontier.nodes.Drop(c.plan.scope.end(s))
}
