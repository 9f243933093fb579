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

// A Choice selects tasks of a run.
type Choice struct {
	After   int64              // place in the run, from 1, of the task after which to begin
	Limit   int                // maximum number of tasks
	Numbers []Numbers          // in one of these ranges, which ascend and do not overlap; empty: any
	States  []corral.TaskState // in one of these states; empty: any
	Since   time.Time          // not done or failed before this time
}

// Numbers is a range of places of tasks in a run, from First to Last.
type Numbers struct{ First, Last int }

// each calls fn with the indices of the tasks, out of n, that are selected by number and come after After, in ascending
// order, until fn returns false.
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

// page returns a page of the rows of n tasks. The function row returns the row of a task, or nil if the task is not
// selected. next is the place of the page's last task if there are more tasks, else 0. Places count all tasks of the
// run, not only the selected ones: the states of tasks may change between two pages, but their places do not.
func (c *Choice) page(n int, row func(i int) *api.TaskStatus) (tasks []*api.TaskStatus, next int64) {
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

// wants reports whether the choice includes a task that has been in the given state since the given time; zero means
// unknown.
func (c *Choice) wants(state corral.TaskState, since time.Time) bool {
	ended := state == corral.TaskDone || state == corral.TaskFailed
	return (len(c.States) == 0 || slices.Contains(c.States, state)) &&
		!(ended && !since.IsZero() && since.Before(c.Since))
}

// TaskPage returns a page of the tasks of a run, in the order of its workflow. next is the place after which the next
// page begins, or 0 if this is the last page.
func TaskPage(ctx context.Context, m *Manager, id corral.RunID, c Choice) (
	tasks []*api.TaskStatus, next int64, err error,
) {
	err = lookThrough(ctx, m, id, func(s *state) {
		tasks, next = c.page(len(s.plan.flow.Tasks), func(i int) *api.TaskStatus {
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
		tasks, next = c.page(len(all), func(i int) *api.TaskStatus {
			if !c.wants(all[i].State, all[i].EndedAt) {
				return nil
			}
			return &all[i]
		})
	})
	return tasks, next, err
}

// AwaitTasks returns when all tasks selected by number are over, or, with an error, when ctx ends. If the run is over
// but one of the tasks is not and never will be, it returns a Conflict error.
func AwaitTasks(ctx context.Context, m *Manager, id corral.RunID, c Choice) error {
	d, _, err := driving(ctx, m, id)
	if err != nil {
		return err
	}
	if d == nil {
		return leftBehind(ctx, m, id, c)
	}
	// The driver ends the wait when it applies the last task's end. Without polling, a wait for a task of milliseconds
	// ends as soon as the task does.
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

// leftBehind refuses to wait for tasks that were not over at the end of their run.
func leftBehind(ctx context.Context, m *Manager, id corral.RunID, c Choice) error {
	row, err := readRow(ctx, m.db.Request(ctx), id)
	if err != nil || !row.State.Over() {
		return err // corrald is stopping
	}
	c.After, c.Limit, c.States = 0, 1, []corral.TaskState{corral.TaskWaiting, corral.TaskReady, corral.TaskRunning}
	tasks, _, err := TaskPage(ctx, m, id, c)
	if err == nil && len(tasks) > 0 {
		err = corral.Errorf(corral.Conflict, "run %d is %s: task %s never ends", id, row.State, tasks[0].ID)
	}
	return err
}

// waits lists the waits of requests for tasks of one run. The goroutine of the run's driver owns it.
type waits []*taskWait

// A taskWait is over when its tasks are.
type taskWait struct {
	choice Choice
	over   chan struct{} // closed when the wait is over
}

// add begins a wait.
func (w *waits) add(t *taskWait, x *execution.Execution) {
	*w = append(*w, t)
	w.look(x)
}

// look ends the waits whose tasks are over. Each wait continues from the first task that was not over at the previous
// look.
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

// drop removes a wait.
func (w *waits) drop(t *taskWait) {
	*w = slices.DeleteFunc(*w, func(other *taskWait) bool { return other == t })
}
