package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// A schedule that is too long for its plan's document is a file beside the database, named by the plan's digest: plans
// of the same digest have the same schedule. It is written before the plan's row, since that takes long, and gets its
// name within the transaction that creates the row; whatever has no plan is removed.

const (
	scheduleSuffix = ".jsonl"
	newSuffix      = ".new" // of a schedule whose plan is not there yet
)

// A Schedule is one whose plan is about to be created; nil is none.
type Schedule struct {
	db   *DB
	file string
}

// NewSchedule keeps what write writes, for a plan that is about to be created. It is on the disk before the plan's row
// is, so that no plan is without its schedule after a power failure.
func (d *DB) NewSchedule(write func(io.Writer) error) (s *Schedule, err error) {
	if err := os.MkdirAll(d.schedules, 0o700); err != nil {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(d.schedules)); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.schedules, "*"+newSuffix) // mode 0600
	if err != nil {
		return nil, err
	}
	s = &Schedule{d, f.Name()}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(s.file))
	}
	return s, nil
}

// Keep makes it the schedule of a plan that the transaction creates. If it does not commit, the schedule has no plan.
func (s *Schedule) Keep(_ *Tx, p corral.Plan) error {
	if s == nil {
		return nil
	}
	if err := os.Rename(s.file, s.db.scheduleFile(p.Digest)); err != nil {
		return err
	}
	return syncFolder(s.db.schedules)
}

// syncFolder puts a folder's list of names on the disk: a file that was renamed is not there without it.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Discard removes it. One that a transaction kept that did not commit has the name of its plan by now, which another
// plan of the same digest may have, too: a sweep tells.
func (s *Schedule) Discard(ctx context.Context) error {
	if s == nil {
		return nil
	}
	err := os.Remove(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s.db.SweepSchedules(ctx)
	}
	return err
}

// scheduleFile is where the schedule of plans with a digest is.
func (d *DB) scheduleFile(digest string) string {
	return filepath.Join(d.schedules, strings.TrimPrefix(digest, "sha256:")+scheduleSuffix)
}

// Schedule opens the schedule that lies apart from a plan. A NotFound error if there is none: it went with its plan.
func (d *DB) Schedule(p corral.Plan) (io.ReadCloser, error) {
	f, err := os.Open(d.scheduleFile(p.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corral.ErrorAt(corral.NotFound, "plan", "the schedule of plan %d is not there: it goes with its "+
			"plan", p.ID)
	}
	return f, err
}

// SweepSchedules removes the schedules whose plans are DELETED, or were never created. It holds up all Writes, so that
// no plan is created meanwhile; schedules that have no plan yet stay.
func (d *DB) SweepSchedules(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(d.schedules, "*"+scheduleSuffix))
	if err != nil || len(files) == 0 {
		return err
	}
	return d.Whole().Write(ctx, Actor, func(whole *WholeTx) error {
		tx := whole.all
		live := map[string]bool{}
		err := tx.rows("select digest from plans where state <> 'DELETED'", nil, func(rows *sql.Rows) error {
			var digest string
			err := rows.Scan(&digest)
			live[d.scheduleFile(digest)] = true
			return err
		})
		if err != nil {
			return err
		}
		return removeFiles(slices.DeleteFunc(files, func(file string) bool { return live[file] }))
	})
}

// sweepNew removes what a process left that ended before its plans were created.
func (d *DB) sweepNew() error {
	files, err := filepath.Glob(filepath.Join(d.schedules, "*"+newSuffix))
	return errors.Join(err, removeFiles(files))
}

func removeFiles(files []string) (err error) {
	for _, file := range files {
		if gone := os.Remove(file); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
