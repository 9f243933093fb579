package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	saveEvery  = 250 * time.Millisecond // minimum time between two writes of progress to the store
	retryAfter = time.Second            // wait before a failed operation is tried again
	actor      = "corrald"              // actor in histories for changes that no user requested
)

// A progress is a run's row, and tracks which progress has been stored. The goroutine of the run's driver owns it.
//
// The journal is authoritative for tasks; the row's counts only inform users, so they are written a few times a second
// and not for each event. For the run's state, however, the row is authoritative: a user may cancel the run in the
// store at any time. So the driver moves the row only from the state that it knows, and reads the row again when the
// store refuses.
type progress struct {
	lg     *slog.Logger
	db     store.Owner // the run's
	owner  string      // owner of the run; it never changes
	row    corral.Run  // as in the store, except for progress that is not saved yet
	saveAt time.Time   // earliest time of the next save
	notes  *notes      // for facts that cannot be stored
	tab    tab         // the stored usage of the tasks
}

// unsaved reports whether the counts, or the reason why nothing runs, differ from the store.
func (p *progress) unsaved(tasks corral.RunTasks, shortage string) bool {
	return p.row.Tasks != tasks || p.row.Reason != shortage && p.row.State == corral.RunRunning
}

// save writes the run's progress to the store, but not too often.
func (p *progress) save(ctx context.Context, now time.Time, tasks corral.RunTasks, shortage string) {
	if !p.unsaved(tasks, shortage) || now.Before(p.saveAt) {
		return
	}
	p.saveAt = now.Add(saveEvery)
	err := p.db.Write(ctx, actor, func(tx *store.Tx) error {
		row, err := tx.SetRun(p.row.ID, tasks, nil)
		if err == nil && row.State == corral.RunRunning && row.Reason != shortage {
			row, err = tx.NoteRun(p.row.ID, shortage)
		}
		if err == nil {
			p.row.Tasks, p.row.Reason = row.Tasks, row.Reason
		}
		return err
	})
	if err != nil {
		p.saveAt = now.Add(retryAfter)
		p.lg.Warn("saving the run's progress", "error", err)
		p.notes.keeps(p.row.ID, cmp.Or(shortage, fmt.Sprintf("its progress cannot be saved: %v", err)))
		return
	}
	p.notes.keeps(p.row.ID, "")
}

// reread copies the run's state and its reason from the store.
func (p *progress) reread(ctx context.Context) {
	row, err := readRow(ctx, p.db, p.row.ID)
	if err != nil {
		p.lg.Warn("reading the state of the run", "error", err)
		return
	}
	p.row.State, p.row.Reason = row.State, row.Reason
}

// readRow reads the row of a run.
func readRow(ctx context.Context, of store.Owner, id corral.RunID) (row corral.Run, err error) {
	err = of.View(ctx, func(tx *store.Tx) error {
		row, err = tx.Run(id)
		return err
	})
	return row, err
}

// cancelled records that the run's row is CANCELLING, and reads the reason.
func (p *progress) cancelled(ctx context.Context) {
	p.row.State = corral.RunCancelling
	p.reread(ctx)
}

// end moves the row of a run that is over, and stores the final counts of its tasks and its report.
func (p *progress) end(
	ctx context.Context, move corral.RunMove, reason string, x *execution.Execution, report *corral.RunReport,
) error {
	tasks, hours := x.Counts(), execution.WorkerHours(x, time.Now())
	return p.db.Write(ctx, actor, func(tx *store.Tx) error {
		if _, err := tx.MoveRun(p.row.ID, move, reason); err != nil {
			return err
		}
		if _, err := tx.SetRun(p.row.ID, tasks, report); err != nil {
			return err
		}
		_, err := p.tab.write(tx, p.row.ID, hours)
		return err
	})
}

// abandon ends a run that cannot be driven because its directory cannot be read. The run may be resumed when that has
// been repaired.
func (p *progress) abandon(ctx context.Context, why error) {
	p.lg.Error("opening the run", "error", why)
	move := corral.RunFail
	if p.row.State == corral.RunCancelling {
		move = corral.RunCancelEnd
	}
	for ctx.Err() == nil {
		err := p.db.Write(ctx, actor, func(tx *store.Tx) error {
			_, err := tx.MoveRun(p.row.ID, move, why.Error())
			return err
		})
		switch {
		case err == nil:
			return
		case corral.KindOf(err) == corral.Conflict:
			move = corral.RunCancelEnd // cancelled meanwhile
		}
		p.lg.Error("ending the run", "error", err)
		retry.For(ctx, retryAfter)
	}
}
