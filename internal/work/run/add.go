package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Once identifies a request to add tasks, so that its repetition is recognized.
type Once struct {
	Key     string // the Idempotency-Key; empty: none
	Request string // a digest of the request
}

// AddTask adds a task or an array to an open run. When it returns, the addition is in the run's journal: from then on,
// a repetition with the same key gets the same numbers, even if the answer was lost.
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

// Close closes an open run, so that no more tasks can be added. Closing it again changes nothing.
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

// driven lets the driver of an active run call fn. It returns a Conflict error if the run is over or about to end.
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
		if !first { // its driver ended twice
			return corral.Errorf(corral.Unavailable, "run %d is not available now: try again", id)
		}
	}
}

// driving returns the driver of a run, or nil if the run is over. Directly after the start of corrald, it waits until
// runs are driven.
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
	return nil, row, corral.Errorf(corral.Unavailable, "run %d is not being driven now: try again", id)
}

// add adds the tasks of a request to the run, unless the request is a repetition.
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
	// The note is written first, then the record, and only then can the task run: the note does not belong to a task
	// until the record exists. If corrald dies after writing the note, the next addition uses the number and writes its
	// own note.
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

// close closes the run to further additions.
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
