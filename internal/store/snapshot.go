package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
)

// A database is copied by another process while corrald works with it. SQLite's VACUUM INTO reads in one transaction,
// which in WAL mode does not block the writer, so the copy is the database at one moment, in a file that needs no
// log. A copy of the file itself would be inconsistent: newer commits are in the log, and a checkpoint may occur
// during the copy. SQLite's backup interface would restart with each commit of the other process.

// Snapshot writes a copy of the database at path into a new file with mode 0600 and returns its schema version. The
// copy has been checked and synced to the disk. The database need not be open and is not migrated. Snapshot returns a
// NotFound error if the database does not exist.
func Snapshot(ctx context.Context, path, into string) (version int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, corral.Errorf(corral.NotFound, "there is no database %s: %w", path, err)
	}
	to, err := os.OpenFile(into, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite accepts an empty file as a new one
	if err != nil {
		return 0, fmt.Errorf("copying the database: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from, err := plain(path, "mode=rw")
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if err := checkSource(ctx, path, from); err != nil { // a copy may be intact although an index of the source is not
		return 0, err
	}
	if _, err := from.ExecContext(ctx, "vacuum into ?", into); err != nil {
		return 0, fmt.Errorf("copying database %s: %w", path, err)
	}
	if version, err = Inspect(ctx, into); err != nil {
		return 0, err
	}
	return version, to.Sync()
}

// Inspect checks a copy of a database that no process has open, page by page, and returns its schema version. It
// returns a Conflict error if the copy belongs to another program, to a newer corrald, or to a version before the
// first release, and an Invalid error if it is damaged.
func Inspect(ctx context.Context, path string) (version int, err error) {
	db, err := plain(path, "mode=ro&immutable=1")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	scripts, err := migrations()
	if err != nil {
		return 0, err
	}
	var said string
	if err := db.QueryRowContext(ctx, "pragma quick_check(1)").Scan(&said); err != nil || said != "ok" {
		return 0, corral.Errorf(corral.Invalid, "the database is damaged: %w", errors.Join(err, errors.New(said)))
	}
	if version, err = schemaVersion(ctx, db, path, len(scripts)); err != nil {
		return 0, err
	}
	if version == 0 {
		return 0, corral.Errorf(corral.Invalid, "the database is empty")
	}
	return version, nil
}

// RunsOf returns the directories of the unfinished runs in a copy of a database, by id. It reads only columns that
// all schema versions have, so the copy may be older than this program.
func RunsOf(ctx context.Context, path string) (map[corral.RunID]string, error) {
	db, err := plain(path, "mode=ro&immutable=1")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "select id, dir from runs where state in ('RUNNING', 'CANCELLING')")
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	defer rows.Close()
	dirs := map[corral.RunID]string{}
	for rows.Next() {
		var id corral.RunID
		var dir string
		if err := rows.Scan(&id, &dir); err != nil {
			return nil, fmt.Errorf("listing runs: %w", err)
		}
		dirs[id] = dir
	}
	return dirs, rows.Err()
}

// plain opens a database unchanged, with only the given options: without the pragmas of pool, which would switch the
// file to WAL mode, and without the lock, which the process that serves the database holds. One connection suffices,
// and its single statement needs no pool.
func plain(path, options string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	const uri = "file:%s?%s&_pragma=busy_timeout(%d)"
	name := fmt.Sprintf(uri, (&url.URL{Path: path}).EscapedPath(), options, busyTimeout.Milliseconds())
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Hold takes the lock on the database at path, so that no corrald can open it until the lock is closed. If a process
// has the database open, Hold returns a Conflict error that names it.
func Hold(ctx context.Context, path string) (io.Closer, error) { return lockFile(ctx, path) }

// SchedulesOf returns the folder of the schedules that belong to the database at path. The files never change once
// they have their final names.
func SchedulesOf(path string) string { return path + "-schedules" }
