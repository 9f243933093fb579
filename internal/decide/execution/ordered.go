package execution

import "github.com/corral-pilot/corral/workflow/dag"

// finishNode says that what a node stands for is done, failNode that it failed for good. Where tasks wait for others of
// their clusters there are no nodes but tasks, and none but that they wait for is in a job before its time.
func finishNode(c *control, node int) {
	if c.frontier.outer == nil {
		c.settle(c.frontier.nodes.Finish(node))
		return
	}
	for _, i := range c.frontier.finish(int32(node)) { // their jobs come to them next, or they are loose
		switch e := c.book.of[i]; {
		case e == nil:
			c.frontier.loosen(i)
		case e.worker != 0:
			c.book.behind--
		}
	}
}

func failNode(c *control, node int) {
	skipped := c.frontier.nodes.Fail(node)
	if c.frontier.outer == nil {
		c.settle(skipped)
		return
	}
	for _, k := range skipped {
		i := int32(k)
		c.frontier.dropped(i)
		c.over = leave(c, i, c.over) // its job does not come to it any more
		c.leave(i)
	}
}

// leave takes task i out of its job, if it is in one. It appends the job's number to over if that was the last of it.
func leave(c *control, i int32, over []int64) []int64 {
	if e := c.book.of[i]; e != nil && e.worker != 0 && c.frontier.state(i) != dag.Ready {
		c.book.behind--
	}
	return c.book.leave(i, over)
}
