package run

// This file serves the output of an active run's tasks: the output of all tasks as one stream (Next), or the output of
// one task (Await). Both wait until there is output. No state is kept between two requests: each contains the place up
// to which its client has read, so that idle clients cost nothing and a restarted corrald can continue to serve them.
// The kernel does not report writes on every file system, so the files of running tasks are polled, with pauses that
// grow with the duration of a poll.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

const (
	pauseLeast = 200 * time.Millisecond // between two polls; users do not read faster
	pauseShare = 20                     // multiple of a poll's duration
	mostBytes  = 1 << 20                // in an answer
	mostFiles  = 1000                   // opened for an answer
	longLine   = 64 << 10               // the beginning of a longer line is sent early
)

// A File identifies a file of one of a run's tasks.
type File struct {
	Task    string
	Attempt int    // 0: the last
	Name    string // stdout, stderr, record.json or trace.json; or, of the task's scripts, pre or post
	Printed bool   // a stream that the workflow redirects to a file of the run counts as absent
}

// A Source provides the files of tasks.
type Source interface {
	// Tasks lists the tasks of a run.
	Tasks(ctx context.Context, id corral.RunID) ([]*api.TaskStatus, error)
	// Log opens a file, which the caller closes. It returns a NotFound error, at "file", if there is none.
	Log(ctx context.Context, id corral.RunID, f File) (io.ReadCloser, error)
}

// A Load returns the current state of the run.
type Load func(context.Context) (corral.Run, error)

// Next returns the output of a run's tasks after a place, as soon as there is any or the run is over. At the deadline
// of ctx it returns an answer without output.
func Next(ctx context.Context, from Source, load Load, since api.OutputPlace) (api.Output, error) {
	for look := context.WithoutCancel(ctx); ; {
		began := time.Now()
		r, err := load(look) // before the tasks: no output can follow once the run is over
		if err != nil {
			return api.Output{}, err
		}
		tasks, err := from.Tasks(look, r.ID)
		if err != nil {
			return api.Output{}, err
		}
		t := newTelling(tasks, since, r.State.Over(), func(f File, after, most int64) ([]byte, error) {
			return reader{from, r.ID}.read(look, f, after, most)
		})
		out, err := t.tell()
		if err != nil || len(out.Pieces) > 0 {
			return out, err
		}
		if out.Over = t.ended && t.complete; out.Over {
			return out, nil
		}
		further := !bytes.Equal(out.Next.Told, since.Told) // there were too many files for one poll
		if since = out.Next; further && !t.complete && ctx.Err() == nil {
			continue
		}
		if !retry.For(ctx, max(pauseLeast, pauseShare*time.Since(began))) {
			return out, late(ctx)
		}
	}
}

// Await returns when a task has written more of a file than after, or will write no more, or at the deadline of ctx.
func Await(ctx context.Context, from Source, load Load, f File, after int64) error {
	for look := context.WithoutCancel(ctx); ; {
		r, err := load(look)
		if err != nil || r.State.Over() {
			return err
		}
		record, err := from.Log(look, r.ID, File{Task: f.Task, Name: "record.json"})
		if err == nil {
			return record.Close()
		}
		if !nothing(err) {
			return err
		}
		more, err := reader{from, r.ID}.read(look, f, after, 1)
		if len(more) > 0 || err != nil && !nothing(err) {
			return err
		}
		if !retry.For(ctx, pauseLeast) {
			return late(ctx)
		}
	}
}

// A reader reads the files of a run.
type reader struct {
	from Source
	run  corral.RunID
}

// read reads up to most bytes of a file, skipping the first after bytes.
func (r reader) read(ctx context.Context, f File, after, most int64) ([]byte, error) {
	file, err := r.from.Log(ctx, r.run, f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return part(file, after, most)
}

// late returns the cause of a request's end: nil if its deadline has passed.
func late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return context.Cause(ctx)
}

// nothing reports whether an error means that a file does not exist.
func nothing(err error) bool {
	var e *corral.Error
	return errors.As(err, &e) && e.Kind == corral.NotFound && e.Place == "file"
}

// part reads up to most bytes of a file, skipping the first after bytes.
func part(f io.Reader, after, most int64) ([]byte, error) {
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(after, io.SeekStart); err != nil {
			return nil, err
		}
	} else if _, err := io.CopyN(io.Discard, f, after); err != nil {
		return nil, nil // the file has no more
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// A telling builds one answer. It begins with the place of the request, and advances that place by the output that it
// adds: told has a bit for each task that is complete, and open contains the position in each of the others.
//
// The size of an answer is limited, so that a client cannot make corrald read a whole run at once. complete reports
// whether all available output fitted; only then may the answer report that the run is over.
type telling struct {
	tasks []*api.TaskStatus
	ended bool // the run has ended, and with it all attempts
	told  []byte
	open  map[int]api.OutputFile
	read  func(f File, after, most int64) ([]byte, error)

	out      api.Output
	bytes    int64 // that the answer may still include
	files    int   // that may still be opened
	complete bool  // nothing was omitted
}

// newTelling begins an answer about tasks at a place. The place comes from a client, so only its valid parts are
// used: numbers beyond the tasks are dropped, and missing positions count as the beginning. A run may have grown
// since.
func newTelling(
	tasks []*api.TaskStatus, since api.OutputPlace, ended bool,
	read func(f File, after, most int64) ([]byte, error),
) *telling {
	t := &telling{
		tasks: tasks, ended: ended, read: read,
		told: make([]byte, (len(tasks)+7)/8), open: make(map[int]api.OutputFile),
		bytes: mostBytes, files: mostFiles, complete: true,
	}
	copy(t.told, since.Told)
	for _, o := range since.Open {
		if o.Index >= 0 && o.Index < len(tasks) {
			o.Stdout, o.Stderr = max(0, o.Stdout), max(0, o.Stderr)
			t.open[o.Index] = o
		}
	}
	return t
}

// tell processes the tasks that may have new output: the ended ones in the order of their ends, and then the running
// ones, from a random one on, so that each gets its turn when there are too many for one answer.
func (t *telling) tell() (api.Output, error) {
	var due []int
	for i := range t.tasks {
		over, told := t.over(i), t.told[i/8]>>(i%8)&1 == 1
		if !over { // it may be a new try
			t.told[i/8] &^= 1 << (i % 8)
		}
		if t.tasks[i].Attempts > 0 && !(over && told) {
			due = append(due, i)
		}
	}
	slices.SortStableFunc(due, func(a, b int) int {
		switch over := t.over(a); {
		case over && t.over(b):
			return t.tasks[a].EndedAt.Compare(t.tasks[b].EndedAt)
		case over:
			return -1
		case t.over(b):
			return 1
		}
		return 0
	})
	if k := slices.IndexFunc(due, func(i int) bool { return !t.over(i) }); k >= 0 && 2*len(due[k:]) > t.files {
		from := k + rand.IntN(len(due)-k)
		due = slices.Concat(due[:k], due[from:], due[k:from])
	}
	for _, i := range due {
		if err := t.task(i); err != nil {
			return api.Output{}, err
		}
	}
	t.out.Next.Told = t.told
	for _, o := range t.open {
		t.out.Next.Open = append(t.out.Next.Open, o)
	}
	slices.SortFunc(t.out.Next.Open, func(a, b api.OutputFile) int { return cmp.Compare(a.Index, b.Index) })
	if t.out.Pieces == nil {
		t.out.Pieces = []api.OutputPiece{} // [] in JSON
	}
	return t.out, nil
}

// over reports whether a task will not print more, unless it is retried.
func (t *telling) over(i int) bool {
	s := t.tasks[i].State
	return t.ended || s == corral.TaskDone || s == corral.TaskFailed || s == corral.TaskSkipped
}

// task adds the output of one task, attempt by attempt: a client that starts at the beginning also gets the output of
// earlier attempts, and an attempt that ends between two requests is sent to its end before the next one begins.
func (t *telling) task(i int) error {
	task := t.tasks[i]
	o, begun := t.open[i]
	if !begun || o.Attempt < 1 {
		o = api.OutputFile{Index: i, Attempt: 1}
	}
	for o.Attempt <= task.Attempts {
		ended := o.Attempt < task.Attempts || t.over(i)
		whole, err := t.attempt(&o, ended)
		if err != nil {
			return err
		}
		if !whole {
			t.complete = false
		}
		if !whole || !ended {
			break
		}
		o = api.OutputFile{Index: i, Attempt: o.Attempt + 1}
	}
	if o.Attempt > task.Attempts && t.over(i) {
		t.told[i/8] |= 1 << (i % 8)
		delete(t.open, i)
		return nil
	}
	t.open[i] = o
	return nil
}

// attempt adds the output of one attempt, and reports whether that is all that is available now.
func (t *telling) attempt(o *api.OutputFile, ended bool) (whole bool, err error) {
	whole = true
	for _, s := range []struct {
		name string
		at   *int64
	}{{"stdout", &o.Stdout}, {"stderr", &o.Stderr}} {
		if t.bytes <= 0 || t.files <= 0 {
			return false, nil
		}
		t.files--
		task, most := t.tasks[o.Index].ID, t.bytes
		text, err := t.read(File{task, o.Attempt, s.name, true}, *s.at, most)
		if nothing(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		all := int64(len(text)) < most
		whole = whole && all
		switch end := bytes.LastIndexByte(text, '\n') + 1; {
		case !ended && (end > 0 || len(text) < longLine):
			text = text[:end] // the rest of the line will follow
		case !ended || !all:
			text = text[:len(text)-unfinished(text)] // the same for a character
		}
		if len(text) == 0 {
			continue
		}
		*s.at += int64(len(text))
		t.bytes -= int64(len(text))
		t.out.Pieces = append(t.out.Pieces, api.OutputPiece{
			Task: task, Attempt: o.Attempt, Stream: s.name, Text: string(text),
		})
	}
	return whole, nil
}

// unfinished returns the number of bytes at the end of a text that begin an incomplete character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
