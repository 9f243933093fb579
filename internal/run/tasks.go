package run

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/embedded/executor"
)

// The files that can be had of an attempt.
const (
	LogStdout = "stdout"
	LogStderr = "stderr"
	LogRecord = "record.json"
)

// now is the time as records and rows have it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Tasks lists the tasks of a run in the order of its workflow.
func (m *Manager) Tasks(ctx context.Context, id corral.RunID) ([]api.Task, error) {
	var tasks []api.Task
	err := m.look(ctx, id, func(s *state) { tasks = s.listing() })
	return tasks, err
}

// look calls fn with the state of a run. A run that is driven answers itself, in the goroutine that owns the state, so
// fn must be quick and must not keep it. Otherwise the state is read from the run's directory.
func (m *Manager) look(ctx context.Context, id corral.RunID, fn func(*state)) error {
	if d := m.driver(id); d != nil {
		done := make(chan struct{})
		select {
		case d.asks <- func(s *state) { fn(s); close(done) }:
			<-done
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-d.gone: // it is over, or corrald is stopping
		}
	}
	row, err := readRow(ctx, m.db, id)
	if err != nil {
		return err
	}
	s, err := readState(ctx, row)
	if err != nil {
		return err
	}
	fn(s)
	return nil
}

// Log opens a file that an attempt at a task left: LogStdout, LogStderr or LogRecord. attempt 0 is the
// last one. The caller closes it. A task, an attempt or a file that is not there is a NotFound error.
func (m *Manager) Log(ctx context.Context, id corral.RunID, task string, attempt int, which string) (*os.File, error) {
	var places []place
	var asked error
	err := m.look(ctx, id, func(s *state) { places, asked = s.places(task, attempt, which) })
	if err := cmp.Or(err, asked); err != nil {
		return nil, err
	}
	for _, p := range places {
		f, err := p.open()
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, corral.Errorf(corral.NotFound, "task %s of run %d left no %s", task, id, which)
}

// A place is where a file may be; links that lead out of dir are not followed.
type place struct{ dir, name string }

// open opens the file. What is not a regular one counts as none: opening a named pipe might never return.
func (p place) open() (*os.File, error) {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	}
	return f, nil
}

// places returns where a file of an attempt may be: in its directory, or, when the task declares it as
// an output file, where outputs are published.
func (s *state) places(task string, attempt int, which string) ([]place, error) {
	i, err := s.plan.index(task)
	if err != nil {
		return nil, err
	}
	t := &s.plan.flow.Tasks[i]
	name := which
	switch which {
	case LogStdout:
		name = cmp.Or(t.Stdout, LogStdout)
	case LogStderr:
		name = cmp.Or(t.Stderr, LogStderr)
	case LogRecord:
	default:
		return nil, corral.Errorf(corral.Invalid, "%q is none of %s, %s, %s", which, LogStdout, LogStderr, LogRecord)
	}
	last := s.x.Task(i).Begun
	attempt = cmp.Or(attempt, last)
	l := layout{s.plan.dir}
	places := []place{{l.attempt(task, attempt), name}}
	if attempt == last && slices.Contains(t.Outputs, name) {
		places = append(places, place{l.path(executor.DataDir), name})
	}
	return places, nil
}
