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
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A schedule that is too long for its plan's document is stored in a file beside the database, named after the plan's
// digest: plans with the same digest have the same schedule. The file is written before the plan's row, because writing
// it takes a long time, and gets its final name within the transaction that creates the row. Files without a plan are
// removed.

const (
	scheduleSuffix = ".jsonl"
	newSuffix      = ".new" // a schedule whose plan does not exist yet
)

// A Schedule is the schedule of a plan that is about to be created; nil means none.
type Schedule struct {
	db   *DB
	file string
}

// NewSchedule stores the output of write for a plan that is about to be created. The data is on the disk before the
// plan's row, so no plan lacks its schedule after a power failure.
func (d *DB) NewSchedule(write func(io.Writer) error) (s *Schedule, err error) {
	if err := os.MkdirAll(d.schedules, 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.SyncFolder(filepath.Dir(d.schedules)); err != nil {
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

// Keep assigns the schedule to a plan that the transaction creates. If the transaction does not commit, the schedule
// has no plan.
func (s *Schedule) Keep(_ *Tx, p corral.Plan) error {
	if s == nil {
		return nil
	}
	if err := os.Rename(s.file, s.db.scheduleFile(p.Digest)); err != nil {
		return err
	}
	return atomicfile.SyncFolder(s.db.schedules)
}

// Discard removes the schedule. If a failed transaction had called Keep, the file already has its final name, which
// another plan with the same digest may share: a sweep then decides.
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

// scheduleFile returns the file for the schedule of plans with a digest.
func (d *DB) scheduleFile(digest string) string {
	return filepath.Join(d.schedules, strings.TrimPrefix(digest, "sha256:")+scheduleSuffix)
}

// Schedule opens the schedule that is stored apart from a plan. It returns a NotFound error if there is none because
// the plan was deleted.
func (d *DB) Schedule(p corral.Plan) (io.ReadCloser, error) {
	f, err := os.Open(d.scheduleFile(p.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corral.ErrorAt(corral.NotFound, "plan", "plan %d has no schedule: it was deleted with the "+
			"plan", p.ID)
	}
	return f, err
}

// SweepSchedules removes the schedules of plans that are DELETED or were never created. It blocks all Writes, so that
// no plan is created in the meantime; new schedules whose plans are still to be created stay.
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

// sweepNew removes the files of a process that ended before it created their plans.
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
