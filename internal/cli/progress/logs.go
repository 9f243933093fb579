package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// outputWait is how long corrald may wait for new output before it answers.
const outputWait = 30 * time.Second

// Outputs calls show with all output of the tasks of a run, from the start until the run is over.
func Outputs(ctx context.Context, cl *api.Client, id corral.RunID, show func(api.OutputPiece) error) error {
	var since api.OutputPlace
	for {
		out, err := cl.RunOutput(ctx, id, since, outputWait)
		if err != nil {
			return err
		}
		ctx = retry.Patiently(ctx) // retries patiently from the first answer on
		for _, piece := range out.Pieces {
			if err := show(piece); err != nil {
				return err
			}
		}
		if out.Over {
			return nil
		}
		since = out.Next
	}
}

// An OutputMerger writes the output of several tasks as one text. Wherever the task changes, a line names the new task.
type OutputMerger struct {
	W    io.Writer
	last string // the last head
	open bool   // the last line is incomplete
}

// Show writes a piece of output.
func (m *OutputMerger) Show(p api.OutputPiece) error {
	var b strings.Builder
	if head := headOf(p); head != m.last {
		if m.open {
			b.WriteByte('\n')
		}
		b.WriteString(head + "\n")
		m.last = head
	}
	b.WriteString(p.Text)
	m.open = !strings.HasSuffix(p.Text, "\n")
	_, err := io.WriteString(m.W, b.String())
	return err
}

// headOf returns a line that names the task of a piece.
func headOf(p api.OutputPiece) string {
	head := "==> " + oneLine.Replace(Inert(p.Task))
	if p.Attempt > 1 {
		head += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	if p.Stream == "stderr" {
		head += ", stderr"
	}
	return head + " <=="
}

// A TaskLog is a file of a run's task: stdout or stderr.
type TaskLog struct {
	Run        corral.RunID
	Task, File string
}

// Log writes a file of a task as the file grows, until the task's attempt is over and has a record. It waits for a file
// that does not exist yet, unless the task will never start; then the error is that the file is not found.
func Log(ctx context.Context, cl *api.Client, of TaskLog, w io.Writer) error {
	for read := int64(0); ; {
		part := api.LogPart{File: of.File, After: read, Wait: outputWait}
		b, err := cl.RunTaskLog(ctx, of.Run, of.Task, part)
		if err == nil && len(b) > 0 {
			read += int64(len(b))
			if _, err := w.Write(b); err != nil {
				return err
			}
			continue
		}
		if err != nil && !notThere(err) {
			return err
		}
		r, errRun := cl.Run(ctx, of.Run)
		if errRun != nil {
			return errRun
		}
		_, errRecord := cl.RunTaskLog(ctx, of.Run, of.Task, api.LogPart{File: "record.json"})
		if errRecord == nil || r.State.Over() { // requests again any output written between the two answers
			part.Wait = 0
			last, errLast := cl.RunTaskLog(ctx, of.Run, of.Task, part)
			if errLast != nil {
				return errLast
			}
			_, errLast = w.Write(last)
			return errLast
		}
	}
}

// notThere reports whether corrald answers that a file does not exist.
func notThere(err error) bool {
	none, ok := errors.AsType[*api.Problem](err)
	return ok && none.Kind == corral.NotFound && none.Place == "file"
}
