package run

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/workflow"
)

// The files of a task that can be requested: those of an attempt, and the output of the last try of its scripts.
const (
	LogStdout = "stdout"
	LogStderr = "stderr"
	LogRecord = "record.json"
	LogTrace  = executor.TraceFile
	LogPre    = "pre"
	LogPost   = "post"
)

// Logs returns the names of all these files.
func Logs() []string { return []string{LogStdout, LogStderr, LogRecord, LogTrace, LogPre, LogPost} }

// now returns the time with the precision of records and rows.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// lookThrough is like look, but uses the index of a run that is over, if it has one.
func lookThrough(
	ctx context.Context, m *Manager, id corral.RunID, fn func(*state), indexed func(corral.Run, *index),
) error {
	if driverFor(ctx, m, id) == nil {
		row, err := readRow(ctx, m.db.Request(ctx), id)
		if err != nil {
			return err
		}
		if row.State.Over() {
			if x := m.indexes.get(row); x != nil {
				indexed(row, x)
				return nil
			}
		}
	}
	return m.look(ctx, id, fn)
}

// look calls fn with the state of a run. If the run has a driver, fn is called in the driver's goroutine, so it must be
// quick and must not keep the state. Otherwise the state is read from the run's directory.
func (m *Manager) look(ctx context.Context, id corral.RunID, fn func(*state)) error {
	if asked, err := ask(ctx, driverFor(ctx, m, id), func(d *driver) { fn(d.state) }); asked || err != nil {
		return err
	}
	row, err := readRow(ctx, m.db.Request(ctx), id)
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

// ask lets a driver call fn in its goroutine. It returns false if there is no driver, because the run is over or
// corrald is stopping.
func ask(ctx context.Context, d *driver, fn func(*driver)) (asked bool, err error) {
	if d == nil {
		return false, nil
	}
	done := make(chan struct{})
	select {
	case d.asks <- func(d *driver) { fn(d); close(done) }:
		<-done
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-d.gone:
		return false, nil
	}
}

// Log opens a file, one of Logs, that an attempt at a task or its scripts left. The caller must close it. A missing
// task, attempt or file is a NotFound error. The files of a packed attempt are restored from the journal.
func (m *Manager) Log(ctx context.Context, id corral.RunID, of File) (io.ReadCloser, error) {
	var t logged
	var r room
	var asked error
	err := lookThrough(ctx, m, id, func(s *state) {
		r = room{s.plan.run, layout{s.plan.dir}, s.plan.pack}
		t, asked = s.task(of.Task)
	}, func(row corral.Run, x *index) {
		r = room{row.ID, layout{row.Dir}, packs(row.Options)}
		t, asked = x.task(id, of.Task)
	})
	if err := cmp.Or(err, asked); err != nil {
		return nil, err
	}
	if of.Printed && (of.Name == LogStdout && t.stdout != stream{} || of.Name == LogStderr && t.stderr != stream{}) {
		return nil, corral.ErrorAt(corral.NotFound, "file", "task %s has its %s in a file of run %d",
			of.Task, of.Name, id)
	}
	places, packed, err := r.places(t, of.Attempt, of.Name)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		f, err := p.open()
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if packed != nil && packed.gone() {
		return packed.open(of.Name)
	}
	return nil, corral.ErrorAt(corral.NotFound, "file", "task %s of run %d left no %s", of.Task, id, of.Name)
}

// A place is a possible place of a file; links that lead out of dir are not followed.
type place struct{ dir, name string }

// open opens the file. A file that is not regular counts as missing: opening a named pipe might never return.
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

// A room locates the files of the attempts at a run's tasks.
type room struct {
	run    corral.RunID
	layout layout
	pack   bool
}

// A logged holds the data needed to find the files of a task's attempts.
type logged struct {
	index          int
	id             string
	argv           []string
	last           int  // last attempt
	done           bool // the last attempt succeeded
	stdout, stderr stream
}

// A stream is the name of one of a task's output streams, empty for the default, and whether it is an output of the
// task.
type stream struct {
	name   string
	output bool
}

// task returns the data that the log of a task needs.
func (s *state) task(id string) (logged, error) {
	i, err := s.plan.index(id)
	if err != nil {
		return logged{}, err
	}
	t, info := &s.plan.flow.Tasks[i], s.x.Task(i)
	l := logged{index: i, id: id, argv: t.Argv, last: info.Begun, done: info.State == corral.TaskDone}
	l.stdout, l.stderr = streamsOf(t)
	return l, nil
}

// streamsOf returns the output streams of a task.
func streamsOf(t *workflow.Task) (stdout, stderr stream) {
	return stream{t.Stdout, slices.Contains(t.Outputs, cmp.Or(t.Stdout, LogStdout))},
		stream{t.Stderr, slices.Contains(t.Outputs, cmp.Or(t.Stderr, LogStderr))}
}

// places returns the possible places of a file of an attempt: its directory and, if the task declares the file as an
// output, the folder of published outputs. For a file that a packed attempt would have left empty or in the journal, it
// also returns the attempt, if it may be packed.
func (r room) places(t logged, attempt int, which string) ([]place, *packed, error) {
	var of stream
	switch which {
	case LogStdout:
		of = t.stdout
	case LogStderr:
		of = t.stderr
	case LogRecord, LogTrace:
	case LogPre, LogPost:
		return []place{{r.layout.path(scriptDir), t.id + "." + which}}, nil, nil
	default:
		return nil, nil, corral.Errorf(corral.Invalid, "%q is none of %s", which, strings.Join(Logs(), ", "))
	}
	name := cmp.Or(of.name, which)
	attempt = cmp.Or(attempt, t.last)
	places := []place{{r.layout.attempt(t.id, attempt), name}}
	switch {
	case attempt != t.last:
		return places, nil, nil
	case of.output:
		return append(places, place{r.layout.path(executor.DataDir), name}), nil, nil
	case !t.done || !r.pack:
		return places, nil, nil
	}
	return places, &packed{room: r, logged: t}, nil
}
