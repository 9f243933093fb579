package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Choice says which tasks of a run are wanted, and how many of them.
type Choice struct {
	After   int64              // place of the task behind which to begin, in the run, from 1
	Limit   int                // so many at most
	Numbers []Numbers          // in one of these ranges, which ascend and do not overlap; none: any
	States  []corral.TaskState // in one of these; none: any
	Since   time.Time          // neither done nor failed before
}

// Numbers are places of tasks in a run, from First to Last.
type Numbers struct{ First, Last int }

// each calls fn with the indices of the tasks that were asked for by number, of n, ascending and behind After, until fn
// says to stop.
func (c *Choice) each(n int, fn func(i int) (more bool)) {
	ranges := c.Numbers
	if len(ranges) == 0 {
		ranges = []Numbers{{1, n}}
	}
	for _, r := range ranges {
		for i := max(r.First-1, int(min(c.After, int64(n)))); i < min(r.Last, n); i++ {
			if !fn(i) {
				return
			}
		}
	}
}

// page collects a page of the rows of n tasks; row makes one, nil if the task is in none of the states. next is the
// place of the page's last task if there are more, else 0. It counts in the whole run, not among those in the states:
// tasks change their states between two pages, their places never.
func (c *Choice) page(n int, row func(i int) *api.Task) (tasks []*api.Task, next int64) {
	last := c.After
	c.each(n, func(i int) bool {
		t := row(i)
		if t == nil {
			return true
		}
		if len(tasks) == c.Limit {
			next = last
			return false
		}
		tasks, last = append(tasks, t), int64(i+1)
		return true
	})
	return tasks, next
}

// wants reports whether a task is asked for that is in a state, and if that is over, since when; zero: nobody knows.
func (c *Choice) wants(state corral.TaskState, since time.Time) bool {
	ended := state == corral.TaskDone || state == corral.TaskFailed
	return (len(c.States) == 0 || slices.Contains(c.States, state)) &&
		!(ended && !since.IsZero() && since.Before(c.Since))
}

// TaskPage lists a page of the tasks of a run, in the order of its workflow. next is where the next page begins after;
// 0: there is none.
func TaskPage(ctx context.Context, m *Manager, id corral.RunID, c Choice) (
	tasks []*api.Task, next int64, err error,
) {
	err = lookThrough(ctx, m, id, func(s *state) {
		tasks, next = c.page(len(s.plan.flow.Tasks), func(i int) *api.Task {
			if state, since, over := execution.Over(s.x, i); over && !c.wants(state, since) {
				return nil
			}
			info := s.x.Task(i)
			if !c.wants(info.State, cmp.Or(info.OverAt, info.EndedAt)) {
				return nil
			}
			return s.row(i, &info)
		})
	}, func(_ corral.Run, x *index) {
		all := x.listed()
		tasks, next = c.page(len(all), func(i int) *api.Task {
			if !c.wants(all[i].State, all[i].EndedAt) {
				return nil
			}
			return &all[i]
		})
	})
	return tasks, next, err
}

// AwaitTasks returns when the tasks that are asked for by number are over, all of them; or when ctx ends, with its
// error. If their run is over and one of them is not, that is a Conflict error: it never will be.
func AwaitTasks(ctx context.Context, m *Manager, id corral.RunID, c Choice) error {
	d, _, err := driving(ctx, m, id)
	if err != nil {
		return err
	}
	if d == nil {
		return leftBehind(ctx, m, id, c)
	}
	// The driver ends the wait in the moment in which it applies the last task's end: nothing polls, and a wait for a
	// task of milliseconds is over as soon as the task is.
	w := &taskWait{choice: c, over: make(chan struct{})}
	asked, err := ask(ctx, d, func(d *driver) { d.state.waits.add(w, d.state.x) })
	if err != nil {
		return err
	}
	if !asked {
		return leftBehind(ctx, m, id, c)
	}
	defer func() { _, _ = ask(context.WithoutCancel(ctx), d, func(d *driver) { d.state.waits.drop(w) }) }()
	select {
	case <-w.over:
		return nil
	case <-d.gone:
		return leftBehind(ctx, m, id, c)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leftBehind refuses to wait for tasks that the end of their run has left as they were.
func leftBehind(ctx context.Context, m *Manager, id corral.RunID, c Choice) error {
	row, err := readRow(ctx, m.db.Request(ctx), id)
	if err != nil || !row.State.Over() {
		return err // corrald stops
	}
	c.After, c.Limit, c.States = 0, 1, []corral.TaskState{corral.TaskWaiting, corral.TaskReady, corral.TaskRunning}
	tasks, _, err := TaskPage(ctx, m, id, c)
	if err == nil && len(tasks) > 0 {
		err = corral.Errorf(corral.Conflict, "run %d is %s: task %s never ends", id, row.State, tasks[0].ID)
	}
	return err
}

// waits are those of requests for tasks of one run. The goroutine of the run's driver owns them.
type waits []*taskWait

// A taskWait is over when its tasks are.
type taskWait struct {
	choice Choice
	over   chan struct{} // closed then
}

// add begins a wait.
func (w *waits) add(t *taskWait, x *execution.Execution) {
	*w = append(*w, t)
	w.look(x)
}

// look ends the waits for tasks that are over. Each looks from the first task that was not over when it looked last.
func (w *waits) look(x *execution.Execution) {
	*w = slices.DeleteFunc(*w, func(t *taskWait) bool {
		open := false
		t.choice.each(execution.Size(x), func(i int) bool {
			open = !x.Task(i).State.Over()
			if !open {
				t.choice.After = int64(i + 1)
			}
			return !open
		})
		if !open {
			close(t.over)
		}
		return !open
	})
}

// drop forgets a wait.
func (w *waits) drop(t *taskWait) {
	*w = slices.DeleteFunc(*w, func(other *taskWait) bool { return other == t })
}
