package run

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// finish ends a run whose tasks are all done, failed or skipped.
func (d *driver) finish(ctx context.Context) (over bool) {
	verdict := execution.VerdictOf(d.state.x)
	if verdict.Status != 0 {
		return d.end(ctx, corral.RunFail, d.state.failure(verdict, exists))
	}
	return d.end(ctx, corral.RunSucceed, verdict.Abort)
}

// end writes the run's last files and moves its row. It reports whether the run is over. It is not over if writing to
// the store failed, which is tried again, or if the run was cancelled meanwhile.
func (d *driver) end(ctx context.Context, move corral.RunMove, reason string) (over bool) {
	created := d.progress.row.CreatedAt
	report := d.state.report(created)
	if move != corral.RunSucceed {
		if d.rescued == "" { // if the store fails, end is called again
			d.rescued = d.rescue()
		}
		reason += d.rescued
	}
	if err := d.state.writeFiles(ctx, d.progress.db, created, report); err != nil {
		d.lg.Warn("writing the run's report", "error", err)
	}
	d.state.dropDone(time.Now()) // tasks that are done can be retried only while the run is active
	err := d.progress.end(ctx, move, reason, d.state.x, report)
	if err == nil {
		d.lg.Info("run is over", "move", move, "reason", reason)
		return true
	}
	if corral.KindOf(err) == corral.Conflict && d.progress.row.State == corral.RunRunning {
		d.progress.cancelled(ctx) // the only move of a running run that others make
		return false
	}
	d.lg.Error("ending the run", "error", err)
	retry.For(ctx, retryAfter)
	return false
}

// writeFiles adds to the report the sites to which files were transferred, which only the store knows. It writes the
// report, the executed workflow and its profile to the run's directory. If no task ran, it writes nothing.
func (s *state) writeFiles(ctx context.Context, of store.Owner, createdAt time.Time, report *corral.RunReport) error {
	if report == nil {
		return nil
	}
	l := layout{s.plan.dir}
	executed := s.plan.snapshot().WithExecutions(createdAt, time.Duration(report.Makespan), s.executions())
	sites, err := store.Read(ctx, of, func(tx *store.Tx) (map[string]string, error) { return sitesOf(tx, executed) })
	report.Transfers = execution.Transfers(s.x, func(worker string) string { return sites[worker] })
	text, unwritten := json.MarshalIndent(report, "", "  ")
	if unwritten != nil {
		return unwritten // unreachable: a report is numbers
	}
	return errors.Join(err,
		os.WriteFile(l.path(reportFile), append(text, '\n'), 0o600),
		writeFile(l.path(executedFile), func(w io.Writer) error { return wfformat.Write(w, executed) }),
		writeProfile(l.path(profileFile), executed, sites, s.traces()), s.writeIndex(l))
}

// writeIndex writes the index of a run that is over. An open run does not have one, because it would lack the
// properties of added tasks.
func (s *state) writeIndex(l layout) error {
	if s.plan.grown != nil {
		return nil
	}
	return indexOf(s).write(l)
}
