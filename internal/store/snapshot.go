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

// A database is copied while corrald works with it, by another process. SQLite's VACUUM INTO does that: it reads in one
// transaction, which in WAL mode holds up no writer, so the copy is the database as it was at one moment, in a file
// that needs no log beside it. A copy of the file itself would be none: newer commits are in the log, and a checkpoint
// may come in between. SQLite's backup interface would begin again with each commit of the other process.

// Snapshot writes a copy of the database at path into a new file, of mode 0600, and returns its schema version. The
// copy is checked, and on the disk. The database need not be open, and is not migrated. A NotFound error if there is
// none.
func Snapshot(ctx context.Context, path, into string) (version int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, corral.Errorf(corral.NotFound, "there is no database %s: %w", path, err)
	}
	to, err := os.OpenFile(into, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite takes an empty file for a new one
	if err != nil {
		return 0, fmt.Errorf("copying the database: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from, err := plain(path, "mode=rw")
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if err := checkSource(ctx, path, from); err != nil { // a copy may be whole although an index of it was not
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

// Inspect checks a copy of a database that nobody has open, page by page, and returns its schema version. A Conflict
// error if it is another program's, a newer corrald's, or from before the first release; Invalid if it is damaged.
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

// RunsOf returns the directories of the runs that are not over in a copy of a database, by id. It reads what every
// schema version has, so that the copy may be older than this program.
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

// plain opens a database as it is, with no more than options say: without the pragmas of pool, which would bring a file
// into WAL mode, and without the lock, which whoever serves from the database has. One connection is enough, and its
// one statement needs no pool.
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

// Hold takes the lock on the database at path, so that no corrald opens it until the lock is closed. A Conflict error
// that names the process if one has it open.
func Hold(ctx context.Context, path string) (io.Closer, error) { return lockFile(ctx, path) }

// SchedulesOf is the folder of the schedules that belong to the database at path. They are files that never change once
// they have their names.
func SchedulesOf(path string) string { return path + "-schedules" }
