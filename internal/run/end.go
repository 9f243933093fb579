package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
)

// unsaved reports whether the store does not know how far the run is.
func (d *driver) unsaved() bool {
	return d.row.Tasks != d.state.counts() || d.row.Reason != d.shortage && d.row.State == corral.RunRunning
}

// save writes the run's progress to the store, but not too often.
func (d *driver) save(ctx context.Context, now time.Time) {
	if !d.unsaved() || now.Before(d.saveAt) {
		return
	}
	d.saveAt = now.Add(saveEvery)
	err := d.db.Write(ctx, actor, func(tx *store.Tx) error {
		row, err := tx.SetRun(d.row.ID, d.state.counts(), nil)
		if err == nil && row.State == corral.RunRunning && row.Reason != d.shortage {
			row, err = tx.NoteRun(d.row.ID, d.shortage)
		}
		if err == nil {
			d.row.Tasks, d.row.Reason = row.Tasks, row.Reason
		}
		return err
	})
	if err != nil {
		d.saveAt = now.Add(lookEvery)
		d.lg.Warn("saving the run's progress", "error", err)
	}
}

// finish ends a run whose tasks are all done, failed or skipped.
func (d *driver) finish(ctx context.Context) (over bool) {
	if reason := d.state.failure(exists); reason != "" {
		return d.end(ctx, corral.RunFail, reason)
	}
	return d.end(ctx, corral.RunSucceed, "")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// failure names the tasks that failed for good, in a sentence, and where to read more if the first wrote anything, which
// one that could not be begun did not; "" if there are none.
func (s *state) failure(exists func(path string) bool) string {
	failed := s.tally.failed
	if len(failed) == 0 {
		return ""
	}
	i := failed[0]
	t := &s.tasks[i]
	how := s.notes[i].reason
	if how == "" {
		how = fmt.Sprintf("exit status %d", t.exit)
	}
	stderr := layout{s.plan.dir}.attempt(s.plan.id(i), int(t.attempt)) + "/" + stream(s.plan.flow.Tasks[i].Stderr, LogStderr)
	text := fmt.Sprintf("task %s failed (%s) in attempt %d", s.plan.id(i), how, t.attempt)
	if exists(stderr) {
		text += "; see " + stderr
	}
	if n := len(failed) - 1; n > 0 {
		text += fmt.Sprintf("; failed too: %s", s.names(failed[1:], 3))
	}
	if n := s.counts().Skipped; n > 0 {
		text += fmt.Sprintf("; skipped below: %d", n)
	}
	return text
}

// names lists the ids of tasks, the first few of them.
func (s *state) names(tasks []int32, few int) string {
	text := ""
	for k, i := range tasks[:min(few, len(tasks))] {
		if k > 0 {
			text += ", "
		}
		text += s.plan.id(i)
	}
	if n := len(tasks) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// stream is the name of the file that a task's output stream goes to.
func stream(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// end writes the run's last files and moves its row. It reports whether the run is over: it is not if
// the store could not be written, which is tried again, or if the run was cancelled meanwhile.
func (d *driver) end(ctx context.Context, move corral.RunMove, reason string) (over bool) {
	report := d.state.report(d.row.CreatedAt)
	if err := d.writeFiles(report); err != nil {
		d.lg.Warn("writing the run's report", "error", err)
	}
	err := d.db.Write(ctx, actor, func(tx *store.Tx) error {
		if _, err := tx.MoveRun(d.row.ID, move, reason); err != nil {
			return err
		}
		_, err := tx.SetRun(d.row.ID, d.state.counts(), report)
		return err
	})
	if err == nil {
		d.lg.Info("run is over", "move", move, "reason", reason)
		return true
	}
	if corral.KindOf(err) == corral.Conflict && d.row.State == corral.RunRunning {
		d.cancelled(ctx) // the only move of a running run that is not ours
		return false
	}
	d.lg.Error("ending the run", "error", err)
	pause(ctx)
	return false
}

// pause waits before something that failed is tried again.
func pause(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// abandon ends a run that cannot be driven, because its directory cannot be read. It may be resumed
// when that is mended.
func (d *driver) abandon(ctx context.Context, why error) {
	d.lg.Error("opening the run", "error", why)
	move := corral.RunFail
	if d.row.State == corral.RunCancelling {
		move = corral.RunCancelEnd
	}
	for ctx.Err() == nil {
		err := d.db.Write(ctx, actor, func(tx *store.Tx) error {
			_, err := tx.MoveRun(d.row.ID, move, why.Error())
			return err
		})
		switch {
		case err == nil:
			return
		case corral.KindOf(err) == corral.Conflict:
			move = corral.RunCancelEnd // cancelled meanwhile
		}
		d.lg.Error("ending the run", "error", err)
		pause(ctx)
	}
}

// writeFiles leaves the report and the workflow as it was executed in the run's directory.
func (d *driver) writeFiles(report *corral.RunReport) error {
	if report == nil {
		return nil
	}
	l := layout{d.row.Dir}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err // unreachable: a report is numbers
	}
	executed := d.state.plan.flow.WithExecutions(d.row.CreatedAt, time.Duration(report.Makespan), d.state.executions())
	return errors.Join(os.WriteFile(l.path(reportFile), append(text, '\n'), 0o600), writeWorkflow(l.path(executedFile), executed))
}

func writeWorkflow(path string, flow *workflow.Workflow) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(workflow.Write(f, flow), f.Close())
}
