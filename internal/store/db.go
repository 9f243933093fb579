// Package store keeps corrald's persistent state in one SQLite file.
//
// A DB is the file. All work on it happens in transactions. A transaction, a Tx, is opened for an Owner and sees that
// owner's rows: View reads one consistent snapshot, Write changes the database. There is one writer at a time;
// readers and the writer never wait for each other. All rows written by one Write carry the same time and the same
// actor.
//
// The invariant: no row ever violates the rules of the domain. A method that makes a change loads rows, applies a
// rule of package corral, and saves the result together with its history entries in one transaction. A glidein is
// settled whenever one of its attempts or its site has changed, and the schema itself rejects an illegal row from any
// writer.
//
// A committed Write survives the death of every process at any instant. It need not survive a loss of power: the
// newest commits may then be missing, but the file is intact.
//
// The package makes no decisions: the root package defines the effect of a change, the engine decides what to do
// next, and the server decides who may request it.
//
// # How it works
//
// Each kind of object has a file with its table: one list that maps columns to fields (see table). A method that
// changes an object loads it, applies a rule and saves the result; table.change performs these three steps, and the
// rule is a method of the object, such as corral.Job.Lease. Code that waits for a change gets a channel from Changed,
// which is closed by the next Write that commits a change to that subject: nothing in corrald polls the store.
//
// # Where to look
//
// The file and its connections: db.go, statement.go, pages.go, lock.go (one process at a time) and migrate.go (schema
// versions). Transactions: owner.go (on whose behalf), whole.go and tx.go. Rows: table.go, column.go (how a Go value
// becomes a column) and filter.go (how a list is selected). Notifications of every changed object: watch.go. Brief
// reads of glideins with many attempts: glideinbrief.go. Requests that may be repeated: idempotency.go. Schedules,
// which are too long for a row and are files beside the database: schedule.go. Copies made while corrald runs:
// snapshot.go. Damage and missing files: inspection.go.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	lock   *os.File
	writer *sql.DB // exactly one connection: SQLite has one writer, so writers queue here without busy errors
	reader *sql.DB

	schedules string       // folder of the schedules, which are too long for a row
	onAct     func(Act)    // nil: acts are not reported
	places    []place      // of the database files, which must not be moved; see Guard
	checking  *inspection  // the check that Open did not wait for
	most      access.Most  // limits on the number of an owner's objects
	revoked   *revocations // a file beside the database

	mu      sync.Mutex                // guards the fields below
	waiting map[Subject]chan struct{} // closed and removed by a Write that changes the subject
	watches map[*Watch]bool
}

// A Subject is an object that a caller can wait for, together with everything that belongs to it (a glidein's jobs; a
// site's jobs and glideins). ID 0 stands for all objects of its kind, and the zero Subject for everything.
type Subject struct {
	Object string // corral.ObjectSite or another such constant
	ID     int64
}

// readers is the number of Views that can read at the same time; further Views wait. A View takes milliseconds, and a
// short wait costs less than another connection with its own cache.
const readers = 4

// busyTimeout covers access outside the one writer and the file lock, such as a person who inspects the file with
// another program.
const busyTimeout = 5 * time.Second

// Open opens the database at path, creates it with mode 0600 if it does not exist, and migrates it to this program's
// schema. The file belongs to this process until Close or its death: a second Open fails after a second with a
// Conflict error that names the holder. A database that a newer program has migrated, or that predates the first
// release, is refused with the same kind of error. All pages are checked first; a damaged page causes a Failed error
// that describes the remedy.
func Open(ctx context.Context, path string) (*DB, error) { return openWithin(ctx, path, patience) }

// openWithin is Open with a configurable time limit for the check.
func openWithin(ctx context.Context, path string, patience time.Duration) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening database: %w", err)
	}
	lock, err := lockFile(ctx, path)
	if err != nil {
		return nil, noRoom(path, err)
	}
	d := &DB{
		lock: lock, waiting: map[Subject]chan struct{}{}, watches: map[*Watch]bool{}, schedules: SchedulesOf(path),
	}
	if err := d.open(ctx, path, patience); err != nil {
		return nil, errors.Join(noRoom(path, err), d.Close())
	}
	return d, nil
}

// open opens the connections. The writer opens first, because it migrates the schema that the readers rely on.
func (d *DB) open(ctx context.Context, path string, patience time.Duration) error {
	if err := refuseLost(path); err != nil {
		return err
	}
	if err := private(path); err != nil {
		return err
	}
	d.writer = pool(path, 1, "_txlock=immediate")
	var err error
	if d.checking, err = check(ctx, path, patience); err != nil {
		return err
	}
	scripts, err := migrations()
	if err != nil {
		return err
	}
	if err := migrate(ctx, d.writer, path, scripts); err != nil {
		return err
	}
	d.reader = pool(path, readers, "_pragma=query_only(1)")
	if d.revoked, err = readRevocations(RevokedOf(path)); err != nil {
		return err
	}
	return errors.Join(d.remember(path), d.sweepNew(), d.SweepSchedules(ctx), d.heedList(ctx))
}

// private makes sure that the file at path exists and that only this user can read it, because it holds digests of
// tokens. SQLite gives its -wal and -shm files the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening database: %w", err)
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// pool prepares connections to the file at path. In WAL mode readers and the writer do not wait for each other. With
// synchronous(NORMAL) a commit is in the log file when it returns, though perhaps not yet on the disk: this matches
// the package's promise and saves one sync per commit.
func pool(path string, connections int, option string) *sql.DB {
	const uri = "file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
		"&_pragma=foreign_keys(1)&%s"
	name := fmt.Sprintf(uri, (&url.URL{Path: path}).EscapedPath(), busyTimeout.Milliseconds(), option)
	p := sql.OpenDB(connector{name})
	p.SetMaxOpenConns(connections)
	p.SetMaxIdleConns(connections)
	return p
}

// Close writes the log back into the file and releases the file. No View or Write may be running.
func (d *DB) Close() error {
	d.checking.end()
	var errs []error
	for _, p := range []*sql.DB{d.reader, d.writer} { // the writer last: the last connection to close cleans up
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, d.revoked.close(), d.lock.Close())...)
}

// view reads at a given time; tests pass their own times.
func (d *DB) view(ctx context.Context, now time.Time, fn func(*work) error) error {
	tx, err := d.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return corral.Errorf(corral.Unavailable, "beginning to read the database: %w", err)
	}
	defer tx.Rollback() // nothing was written, so the error does not matter
	return fn(&work{ctx: ctx, tx: tx, now: now, revoked: d.revoked})
}

// write writes at a given time.
func (d *DB) write(ctx context.Context, now time.Time, actor string, fn func(*work) error) error {
	if actor == "" {
		return corral.Errorf(corral.Internal, "writing without an actor")
	}
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return corral.Errorf(corral.Unavailable, "beginning to write the database: %w", err)
	}
	defer tx.Rollback() // does nothing after the commit
	// Every row and every history entry gets this time and this actor.
	w := &work{ctx: ctx, tx: tx, now: now, most: d.most, actor: actor,
		touched: map[Subject]bool{}, revoked: d.revoked}
	if err := fn(w); err != nil {
		return err
	}
	if w.broken != nil {
		return fmt.Errorf("committing after a failure: %w", w.broken)
	}
	if err := d.revoked.append(w.lines); err != nil {
		return corral.Errorf(corral.Unavailable, "committing to the database: %w", err)
	}
	commit := func(context.Context) error { return tx.Commit() }
	if err := fault.Do(ctx, fault.StoreWrite, commit); err != nil {
		return corral.Errorf(corral.Unavailable, "committing to the database: %w", err)
	}
	if w.wrote {
		w.touched[Subject{}] = true
		d.notify(w.touched)
	}
	d.tell(w)
	return nil
}

// Changed returns a channel that is closed when a Write next commits a change to the subject. A caller that waits for
// a state of the database takes the channel first, then reads, then waits: a change between the read and the wait has
// already closed the channel and is not missed.
func (d *DB) Changed(about Subject) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[about]
	if c == nil {
		c = make(chan struct{})
		d.waiting[about] = c
	}
	return c
}

// notify wakes the callers that wait for one of the subjects. Each channel is closed once and then dropped; the next
// call of Changed creates a new one.
func (d *DB) notify(touched map[Subject]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watches {
		w.add(touched)
	}
	for s := range touched {
		if c := d.waiting[s]; c != nil {
			close(c)
			delete(d.waiting, s)
		}
	}
}

// now returns the current time in the database's resolution, whole milliseconds in UTC, so that a value read back
// equals the value written.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
