package execution

import (
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// People may ask something of single tasks while a run goes on: that a task which failed is tried again, and that one
// ends which is not over. Both are Records like all others, so a replay gives the same state.
//
// A task that is to end fails at once, also if it still waits. If it waits in a job that a worker has, for others of
// that job, it is only marked: it fails when its turn comes, so that these go on. In an open execution one that a
// worker has runs until the worker tells that it has ended, which it may take its time for: until then nothing that
// waits for it begins, and it is not tried again beside itself.
//
// What is tried again of a subworkflow that is over, that is all of it that is not done, as when it has retries.

// A Cancellation says which tasks are to end, and by whose wish.
type Cancellation struct {
	Tasks []int32 `json:"i"`
	Why   string  `json:"why"`
	Await bool    `json:"await,omitempty"` // the end of those that workers have; journals of before did not
}

// cancelled is what is kept of a task that was cancelled, until it is retried.
type cancelled struct {
	why   string
	begun bool // a worker had been given its current attempt
}

// Retriable returns those of the tasks that a retry would change: that failed for good, or are marked to end. Others
// that are ready, run or wait are fine, since they are to run anyway; one that is done, or skipped below another, is a
// Conflict error.
func Retriable(x *Execution, tasks []int) (failed []int32, err error) {
	if x.plan.Open {
		return retriableAdded(x, tasks)
	}
	for _, i := range tasks {
		switch x.frontier.state(int32(i)) {
		case dag.Failed:
			if why := unretriable(x.control, int32(i)); why != "" {
				return nil, refused(x, i, why)
			}
			failed = append(failed, int32(i))
		case dag.Waiting:
			if x.frontier.marked[int32(i)] {
				failed = append(failed, int32(i))
			}
		case dag.Done:
			return nil, refused(x, i, "is done; only tasks that failed are tried again")
		case dag.Skipped:
			return nil, refused(x, i, "never began, because a task before it failed; retry that one")
		}
	}
	return unique(failed), nil
}

// Cancellable returns those of the tasks that a cancellation would change: that are not over and were not cancelled;
// and of an open run those that wait in vain, which say from then on that nobody wants them. One that is done is a
// Conflict error, but not in an open run: who ends thousands of its short tasks cannot know which are just done.
func Cancellable(x *Execution, tasks []int) (open []int32, err error) {
	for _, i := range tasks {
		before := wanes(x.control, int32(i))
		switch x.frontier.state(int32(i)) {
		case dag.Done:
			if !x.plan.Open {
				return nil, refused(x, i, "is done")
			}
		case dag.Waiting, dag.Ready:
			if !before {
				open = append(open, int32(i))
			}
		case dag.Skipped:
			if x.attempts.causes[int32(i)] == Never {
				open = append(open, int32(i))
			}
		}
	}
	return unique(open), nil
}

func refused(x *Execution, i int, why string) error {
	return corral.ErrorAt(corral.Conflict, "tasks", "task %s %s", x.plan.Tasks[i].ID, why)
}

func unique(tasks []int32) []int32 {
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// spare lets a task that waits to be ended run after all.
func spare(c *control, i int32) {
	if c.frontier.marked[i] {
		delete(c.frontier.marked, i)
		delete(c.attempts.cancelled, i)
		delete(c.attempts.notes, i)
	}
}

// cancel ends tasks, or marks them to be ended.
func cancel(c *control, r *Cancellation) {
	for _, i := range r.Tasks {
		if i < 0 || int(i) >= len(c.plan.Tasks) {
			continue
		}
		if c.attempts.causes[i] == Never && c.frontier.state(i) == dag.Skipped {
			c.attempts.causes[i], c.attempts.notes[i] = Withdrawn, r.Why
		}
		if c.frontier.state(i) > dag.Ready {
			continue
		}
		c.attempts.cancelled[i] = cancelled{why: r.Why}
		switch e := c.book.of[i]; {
		case e == nil || e.worker == 0:
			doom(c, i)
		case c.frontier.state(i) == dag.Waiting:
			c.frontier.marked[i], c.attempts.notes[i] = true, r.Why
		case r.Await && c.plan.Open:
			c.attempts.notes[i], c.attempts.causes[i] = r.Why, Withdrawn
			c.kills = append(c.kills, e.seq)
		default:
			doom(c, i)
		}
	}
}

// wanes reports whether a task was cancelled and has not been tried again since: if it is not over, it is to end.
func wanes(c *control, i int32) bool {
	_, is := c.attempts.cancelled[i]
	return is
}

// reap ends the marked tasks whose turn has come.
func reap(c *control) {
	ripe := c.frontier.ripe
	c.frontier.ripe = nil
	for _, i := range ripe {
		if c.frontier.marked[i] && c.frontier.state(i) == dag.Ready {
			delete(c.frontier.marked, i)
			doom(c, i)
		}
	}
}

// doom ends a cancelled task: it fails, and the job that it is in is to be killed. Tasks after it in an ordered job
// leave that, too: until the kill gets there one may have begun, so that their attempts count as made.
func doom(c *control, i int32) {
	e, u := c.book.of[i], c.units[i]
	begun := e != nil && e.worker != 0 || u != nil && u.stage == stagePost
	var behind []int32
	if e != nil {
		c.kills = append(c.kills, e.seq)
		if e.worker != 0 {
			behind = c.book.remaining(e)
		}
	}
	c.over = leave(c, i, c.over)
	withdraw(c, i, begun)
	for _, k := range behind {
		if c.frontier.state(k) == dag.Skipped {
			c.attempts.next(k)
		}
	}
}

// withdraw has a cancelled task fail that is in no job; begun: a worker was given its current attempt.
func withdraw(c *control, i int32, begun bool) {
	was := c.attempts.cancelled[i]
	was.begun = begun
	c.attempts.cancelled[i], c.attempts.notes[i] = was, was.why
	delete(c.frontier.ends, i) // of a back-off
	delete(c.attempts.causes, i)
	if c.plan.Open {
		c.attempts.causes[i] = Withdrawn
	}
	closeUnit(c, i)
	if c.frontier.state(i) == dag.Waiting || c.held(i) {
		c.frontier.dropped(i)
	}
	c.attempts.tally.failed = append(c.attempts.tally.failed, int(i))
	c.fail(verdict{unit: i, status: -1}, int(i))
}

// begunAfterAll notes that a worker is given an attempt at a task that was cancelled meanwhile, or at one after it in
// its job: the attempt's number is used up.
func begunAfterAll(c *control, p Part) {
	if !c.attempts.current(p) {
		return
	}
	if was, is := c.attempts.cancelled[p.Task]; is {
		was.begun = true
		c.attempts.cancelled[p.Task] = was
	} else if c.frontier.state(p.Task) == dag.Skipped {
		c.attempts.next(p.Task)
	}
}
