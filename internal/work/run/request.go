package run

import (
	"cmp"
	"context"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
)

// Requests about single tasks are written to the run's journal, like all events of tasks, and only then passed to the
// cluster. Repeating a request changes nothing.

// An order makes the record of a request about a run's tasks, based on their state. The record is empty if nothing has
// to be done.
type order func(*state) (execution.Record, error)

// RetryTasks retries tasks that failed permanently, with all their retries, and reopens the tasks that were skipped
// below them. A run that is over continues with only these tasks: other failed tasks remain failed.
func (m *Manager) RetryTasks(ctx context.Context, actor string, id corral.RunID, tasks []string) (corral.Run, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	retry := func(s *state) (rec execution.Record, err error) {
		chosen, err := s.plan.indices(tasks)
		if err == nil {
			rec.Retried, err = execution.Retriable(s.x, chosen)
		}
		if err == nil {
			err = s.unnoted(rec.Retried)
		}
		return rec, err
	}
	row, driven, err := obeyed(ctx, m, id, retry)
	if err == nil && !driven && row.State == corral.RunSucceeded {
		err = corral.ErrorAt(corral.Conflict, "tasks", "run %d is %s: there is nothing to retry", id, row.State)
	}
	if err == nil && !driven {
		if row, err = m.still(ctx, id, corral.RunResume); err == nil {
			row, err = goOn(ctx, m, actor, row, func(s *state) (execution.Record, error) {
				rec, err := retry(s)
				if err == nil && len(rec.Retried) == 0 {
					err = corral.ErrorAt(corral.Conflict, "tasks",
						"none of them failed; tasks that did not begin run when the run is resumed")
				}
				return rec, err
			})
		}
	}
	if err != nil {
		return corral.Run{}, err
	}
	return row, m.db.Request(ctx).Write(ctx, actor, entered(id, "retry of tasks", tasks))
}

// CancelTasks cancels tasks of an active run. Running tasks are asked to end, and killed if they do not; waiting tasks
// never start, and tasks that depend on them are skipped.
func (m *Manager) CancelTasks(ctx context.Context, actor string, id corral.RunID, tasks []string) (corral.Run, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	row, driven, err := obeyed(ctx, m, id, func(s *state) (rec execution.Record, err error) {
		chosen, err := s.plan.indices(tasks)
		if err != nil {
			return rec, err
		}
		open, err := execution.Cancellable(s.x, chosen)
		if len(open) > 0 {
			rec.Cancelled = &execution.Cancellation{Tasks: open, Why: "cancelled by " + actor, Await: true}
		}
		return rec, err
	})
	if err == nil && !driven {
		err = corral.ErrorAt(corral.Conflict, "tasks", "run %d is %s: none of its tasks are running", id, row.State)
	}
	if err != nil {
		return corral.Run{}, err
	}
	return row, m.db.Request(ctx).Write(ctx, actor, entered(id, "cancellation of tasks", tasks))
}

// entered writes a request about tasks to the run's history.
func entered(id corral.RunID, what string, tasks []string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		return tx.Log(corral.ObjectRun, int64(id), what, strings.Join(tasks, ", "))
	}
}

// obeyed lets the driver of a run carry out an order; driven is false if the run is over.
func obeyed(ctx context.Context, m *Manager, id corral.RunID, o order) (row corral.Run, driven bool, err error) {
	var refused error
	d, row, err := driving(ctx, m, id)
	if err == nil {
		driven, err = ask(ctx, d, func(d *driver) {
			refused = d.obey(o)
			row = d.progress.row
			row.Tasks = d.state.x.Counts() // they are stored later
		})
	}
	if err == nil && !driven {
		row, err = readRow(ctx, m.db.Request(ctx), id)
	}
	return row, driven, cmp.Or(err, refused)
}

// obey records an order and applies it.
func (d *driver) obey(o order) error {
	if state := d.progress.row.State; state != corral.RunRunning {
		return corral.ErrorAt(corral.Conflict, "tasks", "run %d is %s", d.progress.row.ID, state)
	}
	rec, err := o(d.state)
	if err != nil || len(rec.Retried) == 0 && rec.Cancelled == nil { // nothing has to be done
		return err
	}
	rec.At = execution.ToMsec(now())
	if err := d.sink.note(rec); err != nil {
		return err
	}
	d.read()
	return nil
}

// indices looks up tasks by their ids.
func (p *plan) indices(ids []string) ([]int, error) {
	if p.grown != nil {
		return p.numbers(ids)
	}
	index := make(map[string]int, len(p.flow.Tasks))
	for i := range p.flow.Tasks {
		index[p.flow.Tasks[i].ID] = i
	}
	chosen := make([]int, len(ids))
	for k, id := range ids {
		i, ok := index[id]
		if !ok {
			return nil, noTask("tasks", p.run, id, p.ids())
		}
		chosen[k] = i
	}
	return chosen, nil
}

// numbers looks up tasks of an open run, which may have very many.
func (p *plan) numbers(ids []string) ([]int, error) {
	chosen := make([]int, len(ids))
	for k, id := range ids {
		i, ok := p.number(id)
		if !ok {
			return nil, corral.ErrorAt(corral.NotFound, "tasks",
				"run %d has no task %.40q: its %d tasks are numbered from 1", p.run, id, len(p.flow.Tasks))
		}
		chosen[k] = i
	}
	return chosen, nil
}
