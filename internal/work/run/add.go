package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Once names a request to add tasks, so that its repetition is known.
type Once struct {
	Key     string // the Idempotency-Key; empty: there is none
	Request string // a digest of the request
}

// AddTask adds a task, or an array, to an open run. What is added is in the run's journal when it returns: from then on
// a repetition under the same key gets the same numbers, whatever became of the answer.
func AddTask(ctx context.Context, m *Manager, id corral.RunID, in api.NewTask, of Once) (
	added api.AddedTasks, err error,
) {
	var refused error
	err = driven(ctx, m, id, func(d *driver) { added, refused = d.add(&in, of) })
	if err == nil {
		err = refused
	}
	return added, err
}

// Close lets nothing more be added to an open run. To repeat it changes nothing.
func Close(ctx context.Context, m *Manager, actor string, id corral.RunID) (corral.Run, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	var row corral.Run
	var refused error
	err := driven(ctx, m, id, func(d *driver) { row, refused = d.close() })
	if err == nil {
		err = refused
	}
	if err != nil {
		return corral.Run{}, err
	}
	return row, m.db.Request(ctx).Write(ctx, actor, entered(id, "close", nil))
}

// driven has the driver of a run that goes on call fn. A run that is over, or just coming to its end, is a Conflict.
func driven(ctx context.Context, m *Manager, id corral.RunID, fn func(*driver)) error {
	for first := true; ; first = false {
		d, row, err := driving(ctx, m, id)
		if err != nil {
			return err
		}
		if d == nil {
			return corral.Errorf(corral.Conflict, "run %d is %s", id, row.State)
		}
		if asked, err := ask(ctx, d, fn); asked || err != nil {
			return err
		}
		if !first { // its driver went twice
			return corral.Errorf(corral.Unavailable, "run %d is not available now: ask again", id)
		}
	}
}

// driving returns what drives a run; nil if the run is over. Right after the start of corrald it waits until runs are
// driven.
func driving(ctx context.Context, m *Manager, id corral.RunID) (*driver, corral.Run, error) {
	if d := driverFor(ctx, m, id); d != nil {
		return d, corral.Run{}, nil
	}
	row, err := readRow(ctx, m.db.Request(ctx), id)
	if err != nil || row.State.Over() {
		return nil, row, err
	}
	select {
	case <-m.begun:
	case <-ctx.Done():
		return nil, row, ctx.Err()
	}
	if d := driverFor(ctx, m, id); d != nil {
		return d, row, nil
	}
	if row, err = readRow(ctx, m.db.Request(ctx), id); err != nil || row.State.Over() {
		return nil, row, err
	}
	return nil, row, corral.Errorf(corral.Unavailable, "run %d is not being driven now: ask again", id)
}

// add adds to the run what a request says, unless it did so before.
func (d *driver) add(in *api.NewTask, of Once) (api.AddedTasks, error) {
	p, id := d.state.plan, d.progress.row.ID
	if p.grown == nil {
		const why = "run %d has a workflow: no tasks can be added to it"
		return api.AddedTasks{}, corral.Errorf(corral.Conflict, why, id)
	}
	if before, ok := p.grown.keys[of.Key]; ok && of.Key != "" {
		if before.request != of.Request {
			const why = "key %q was used before with another request"
			return api.AddedTasks{}, corral.Errorf(corral.KeyReused, why, of.Key)
		}
		return before.added, nil
	}
	if state := d.progress.row.State; state != corral.RunRunning {
		return api.AddedTasks{}, corral.Errorf(corral.Conflict, "run %d is %s", id, state)
	}
	if !execution.Takes(d.state.x) {
		const why = "run %d is closed: no more tasks can be added to it"
		return api.AddedTasks{}, corral.Errorf(corral.Conflict, why, id)
	}
	a, err := p.addition(in, of)
	if err != nil {
		return api.AddedTasks{}, err
	}
	// Intent before effect: the note belongs to no task before the record is there, and the record is there before
	// anything of the task runs. If corrald dies after the first of them, the next addition takes the number and writes
	// its own note.
	first := len(p.flow.Tasks)
	if in.Note != "" {
		if err := p.spoolNote(first, in.Note); err != nil {
			return api.AddedTasks{}, err
		}
	}
	if err := d.sink.note(execution.Record{At: execution.ToMsec(now()), Added: a}); err != nil {
		p.dropNote(first)
		return api.AddedTasks{}, err
	}
	d.read()
	return api.AddedTasks{First: first + 1, Count: int(a.Count)}, nil
}

// close lets nothing more be added.
func (d *driver) close() (corral.Run, error) {
	if d.state.plan.grown == nil {
		const why = "run %d has a workflow: it ends by itself and cannot be closed"
		return corral.Run{}, corral.Errorf(corral.Conflict, why, d.progress.row.ID)
	}
	if execution.Takes(d.state.x) {
		if err := d.sink.note(execution.Record{At: execution.ToMsec(now()), Closed: true}); err != nil {
			return corral.Run{}, err
		}
		d.read()
		d.progress.notes.close(d.progress.row.ID)
	}
	row := d.progress.row
	row.Tasks = d.state.x.Counts()
	return row, nil
}
