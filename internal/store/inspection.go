package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/dbcheck"
)

// A damaged or moved database is worse than none: reads may be wrong, and writes may be lost. So each start and each
// backup checks all pages, and while a database is open its file is watched.
//
// The check is SQLite's quick_check: it reads each page and each row, and omits only the comparison of indexes with
// their tables, which takes several times as long. Disk damage, and writes by other programs, show as malformed
// pages.

// SQLite's result codes that this package acts on. The low byte is the primary code.
const (
	codeCorrupt     = 11
	codeFull        = 13
	codeNotDatabase = 26
	codeWrite       = 10 | 3<<8  // writing failed
	codeTruncate    = 10 | 6<<8  // truncating failed
	codeShmSize     = 10 | 19<<8 // growing the shared memory failed, as on a full disk
)

// codeOf returns SQLite's code of an error, or 0 if it has none.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// findings is the maximum number of faults that a check reports, because the first few are as informative as all.
const findings = 3

// damageOf checks each page of a database, without comparing indexes with tables, and returns its findings in one
// line, empty if the database is intact. An error means that the check itself failed.
func damageOf(ctx context.Context, db *sql.DB) (damage string, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("pragma quick_check(%d)", findings))
	var found []string
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var said string
			if err := rows.Scan(&said); err != nil {
				return "", err
			}
			found = append(found, strings.Split(strings.TrimSpace(said), "\n")...)
		}
		err = rows.Err()
	}
	switch code := codeOf(err) & 0xff; {
	case code == codeCorrupt || code == codeNotDatabase:
		found = append(found, err.Error())
	case err != nil:
		return "", fmt.Errorf("checking the database: %w", err)
	case len(found) == 1 && found[0] == "ok":
		return "", nil
	}
	found = compact(found)
	return strings.Join(found, "; "), nil
}

// compact drops the lines that only identify the database and shortens long ones.
func compact(found []string) (short []string) {
	for _, line := range found {
		if !strings.HasPrefix(line, "***") && len(short) < findings {
			short = append(short, fmt.Sprintf("%.120s", line))
		}
	}
	return short
}

// restoring returns the command that restores a backup of the database at path.
func restoring(path, flags string) string {
	return fmt.Sprintf("`corral admin restore %s--state %s FILE`", flags, filepath.Dir(path))
}

// damaged returns the error for a database in which a check has found damage.
func damaged(path, damage string) error {
	return corral.Errorf(corral.Failed, "the database %s is damaged (%s), so corrald does not serve it: restore the "+
		"last backup with %s, then start corrald again", path, damage, restoring(path, "--force "))
}

// refuseLost refuses to create a database where one existed before: its users would find all their objects missing.
func refuseLost(path string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // any other error is returned when the file is opened
	}
	if _, err := os.Lstat(dbcheck.File(path)); err != nil {
		return nil
	}
	return corral.Errorf(corral.Conflict, "the database %s is missing, and corrald does not start with an empty "+
		"one: put it back, or restore a backup with %s; to start without data, remove %s", path, restoring(path, ""),
		dbcheck.File(path))
}

// patience is how long a start waits for its check. A check takes about 10 s of processor time for 500 MiB. The check
// of a much larger database continues while corrald works, and Guard reports the result.
const patience = 20 * time.Second

// An inspection is a check that was begun at a start.
type inspection struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when the check ends
	err    error         // valid once over is closed
}

// check checks the database before anything in it is changed. It waits for at most patience; a check that takes
// longer continues and is returned.
func check(ctx context.Context, path string, patience time.Duration) (*inspection, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &inspection{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		c.err = inspect(inner, path)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.over:
		cancel()
		return nil, c.err
	case <-ctx.Done():
		c.end()
		return nil, context.Cause(ctx)
	case <-timer.C:
		return c, nil
	}
}

// end stops a check early. It does nothing for a nil inspection.
func (c *inspection) end() {
	if c != nil {
		c.cancel()
		<-c.over
	}
}

// found returns a channel that is closed when a check that is still running ends. For a nil inspection it returns a nil
// channel, which is never closed.
func (c *inspection) found() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.over
}

// inspect checks a database on a separate connection and records the result.
func inspect(ctx context.Context, path string) error {
	db := pool(path, 1, "_pragma=query_only(1)")
	defer db.Close()
	damage, err := damageOf(ctx, db)
	if err != nil {
		return err
	}
	if err := dbcheck.Write(path, dbcheck.Record{At: now(), By: dbcheck.Start, Damage: damage}); err != nil {
		return err
	}
	if damage != "" {
		return damaged(path, damage)
	}
	return nil
}

// checkSource checks a database before it is copied and records the result.
func checkSource(ctx context.Context, path string, db *sql.DB) error {
	damage, err := damageOf(ctx, db)
	if err != nil {
		return err
	}
	if err := dbcheck.Write(path, dbcheck.Record{At: now(), By: dbcheck.Backup, Damage: damage}); err != nil {
		return err
	}
	if damage == "" {
		return nil
	}
	return corral.Errorf(corral.Failed, "the database %s is damaged (%s): no backup was made, and earlier ones stay; "+
		"stop corrald and restore the last one with %s", path, damage, restoring(path, "--force "))
}

// noRoom replaces an error from opening the database with an explanation if the disk is too full for the necessary
// writes.
func noRoom(path string, err error) error {
	code := codeOf(err)
	switch {
	case code&0xff == codeFull, code == codeWrite, code == codeTruncate, code == codeShmSize,
		errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return corral.Errorf(corral.Failed, "there is no room to write %s: the disk is full, or a quota or `ulimit "+
			"-f` is used up; make room, then start corrald again (%w)", path, err)
	}
	return err
}

// A place is a file that must not be moved while the database is open.
type place struct {
	what, path string
	opened     fs.FileInfo
}

// remember records which files were opened.
func (d *DB) remember(path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("opening database: %w", err)
	}
	lock, err := d.lock.Stat()
	if err != nil {
		return fmt.Errorf("locking database: %w", err)
	}
	d.places = []place{{"database", path, file}, {"lock of the database,", d.lock.Name(), lock}}
	return nil
}

// lookEvery is the interval of Guard's checks: writes in between may be lost. A check takes two calls of stat.
const lookEvery = 2 * time.Second

// Guard returns a Conflict error once the database file or its lock was removed or replaced: later writes are lost.
// It also returns the error of a check that the start did not wait for, Failed if the database is damaged, and nil
// when ctx ends.
func (d *DB) Guard(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	checked := d.checking.found()
	for {
		if err := d.inPlace(); err != nil {
			return err
		}
		select {
		case <-checked:
			if d.checking.err != nil {
				return d.checking.err
			}
			checked = nil
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// inPlace returns a Conflict error if one of the files was removed or replaced. It ignores other errors, such as those
// of an unavailable file server.
func (d *DB) inPlace() error {
	for _, p := range d.places {
		now, err := os.Stat(p.path)
		happened := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			happened = "removed"
		case err == nil && !os.SameFile(now, p.opened):
			happened = "replaced by another file"
		default:
			continue
		}
		return corral.Errorf(corral.Conflict, "the %s %s was %s while corrald was using it, so corrald stops: "+
			"its writes would be lost. Put the file back, or restore a backup with %s, then start corrald again",
			p.what, p.path, happened, restoring(d.places[0].path, "--force "))
	}
	return nil
}

// Path returns the path of the database file.
func (d *DB) Path() string { return d.places[0].path }

// Checked reports whether all pages had been checked when Open returned; otherwise Guard reports the result.
func (d *DB) Checked() bool { return d.checking == nil }

// Seal makes each later Write fail, after a Write in progress has ended. It is called when the database's file is
// missing.
func (d *DB) Seal() error { return d.writer.Close() }

// Holder returns the id of the process that has the database at path open, 0 if there is none, or -1 if the process has
// not yet written its id. It changes nothing, not even the lock file.
func Holder(path string) (pid int, err error) {
	f, err := os.Open(path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for a corrald that has database %s: %w", path, err)
	}
	defer f.Close()
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return 0, nil // closing f releases the lock
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, fmt.Errorf("looking for a corrald that has database %s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, fmt.Errorf("looking for a corrald that has database %s: %w", path, err)
	}
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		return -1, nil
	}
	return pid, nil
}
