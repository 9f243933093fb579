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

// A database that is damaged, or is not where it was, is worse than none: what is read may be wrong, and what is
// written may be lost. So each start and each backup check all pages, and while a database is open its file is watched.
//
// The check is SQLite's quick_check: it reads each page and each row, and leaves out only whether indexes match their
// tables, which takes several times as long. Damage of a disk, and a file that something else has written to, show as
// pages that make no sense.

// SQLite's result codes that this package acts on. The low byte is the primary code.
const (
	codeCorrupt     = 11
	codeFull        = 13
	codeNotDatabase = 26
	codeWrite       = 10 | 3<<8  // writing failed
	codeTruncate    = 10 | 6<<8  // setting the length failed
	codeShmSize     = 10 | 19<<8 // growing the shared memory failed, as on a full disk
)

// codeOf is SQLite's code of an error, 0 if it has none.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// findings is how many faults a check names: the first ones tell as much as all.
const findings = 3

// damageOf checks each page of a database, without the match of indexes and tables, and returns what it found in one
// line, empty if the database is whole. An error means that it could not be checked.
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

// compact leaves out the lines that only say which database is meant, and shortens what is long.
func compact(found []string) (short []string) {
	for _, line := range found {
		if !strings.HasPrefix(line, "***") && len(short) < findings {
			short = append(short, fmt.Sprintf("%.120s", line))
		}
	}
	return short
}

// restoring is the command that puts a backup of the database at path back.
func restoring(path, flags string) string {
	return fmt.Sprintf("`corral admin restore %s--state %s FILE`", flags, filepath.Dir(path))
}

// damaged is the error about a database that a check has found damaged.
func damaged(path, damage string) error {
	return corral.Errorf(corral.Failed, "the database %s is damaged (%s), so corrald does not serve from it: put the "+
		"last backup back with %s, then start corrald again", path, damage, restoring(path, "--force "))
}

// refuseLost refuses to make a database where one has been before: its users would find all that they had gone.
func refuseLost(path string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // opening it gives any other error
	}
	if _, err := os.Lstat(dbcheck.File(path)); err != nil {
		return nil
	}
	return corral.Errorf(corral.Conflict, "the database %s is missing, and corrald does not begin with an empty "+
		"one: put it back, or a backup with %s; to begin with nothing, remove %s", path, restoring(path, ""),
		dbcheck.File(path))
}

// patience is how long a start waits for its check. That of a database of 500 MiB takes some 10 s of a processor; of a
// much larger one it goes on while corrald works, and Guard reports what it finds.
const patience = 20 * time.Second

// An inspection is a check that a start has begun.
type inspection struct {
	cancel context.CancelFunc
	over   chan struct{} // closed at the end
	err    error         // once over is closed
}

// check checks the database before anything in it is changed, for at most patience. If it takes longer it goes on, and
// is returned.
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

// end ends a check early. A nil inspection has none.
func (c *inspection) end() {
	if c != nil {
		c.cancel()
		<-c.over
	}
}

// found is closed at the end of the check that a start has left running; nil, which never is, if there is none.
func (c *inspection) found() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.over
}

// inspect checks a database on a connection of its own, and keeps the result.
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

// checkSource checks the database of which a copy is to be made, and keeps the result.
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
		"stop corrald and put the last one back with %s", path, damage, restoring(path, "--force "))
}

// noRoom gives an error of opening the database its sentence if the disk has no room for what opening writes.
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

// A place is a file that has to stay where it is while the database is open.
type place struct {
	what, path string
	opened     fs.FileInfo
}

// remember notes which files were opened.
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

// lookEvery is how often Guard looks: what is written in between may be lost. A look is two calls of stat.
const lookEvery = 2 * time.Second

// Guard returns a Conflict error once the file of the database, or its lock, was removed or replaced by another file:
// what is written from then on is lost. It also returns the error of a check that the start did not wait for, Failed if
// the database is damaged, and nil when ctx ends.
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

// inPlace looks once. An error of looking itself, such as that of a file server that is away, says nothing.
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
		return corral.Errorf(corral.Conflict, "the %s %s was %s while corrald worked with it, so corrald ends: "+
			"what it writes would be lost. Put the file back, or a backup with %s, then start corrald again", p.what,
			p.path, happened, restoring(d.places[0].path, "--force "))
	}
	return nil
}

// Path is the file of the database.
func (d *DB) Path() string { return d.places[0].path }

// Checked reports whether all pages had been checked when Open returned; else Guard reports what is found.
func (d *DB) Checked() bool { return d.checking == nil }

// Seal has each Write from now on fail; one that has begun ends first. It is for a database whose file is gone.
func (d *DB) Seal() error { return d.writer.Close() }

// Holder returns the process that has the database at path open, 0 if none has; -1 stands for one that has not written
// its number yet. It changes nothing, not even the lock's file.
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
		return 0, nil // the lock is free again when f is closed
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
