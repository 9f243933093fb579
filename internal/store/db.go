// Package store keeps what corrald must not forget, in one SQLite file.
//
// A DB is the file. Work on it is a transaction, a Tx, which is opened for an Owner and sees what that owner sees: View
// reads one consistent picture, Write changes it. There is one writer at a time; readers never wait for it, nor it for
// them. All rows that one Write leaves carry the same time and the same actor.
//
// The invariant: a row never says what the domain forbids. A method that changes something loads rows,
// asks a rule of package corral, and saves what the rule returns together with its lines of history, in
// one transaction. A glidein is settled whenever one of its attempts or its site has changed, and the
// schema itself refuses an illegal row, whoever writes it.
//
// A committed Write survives the death of every process at any instant. It does not have to survive a
// loss of power: then the newest commits may be missing, but the file is whole.
//
// The package decides nothing: what a change does is the root package's to say, what to do next the
// engine's, who may ask for it the server's.
//
// # How it works
//
// Each kind of object has a file with its table: one list that says which column holds which field (see table).
// A method that changes an object is load, rule, save; table.change does these three beats, and the rule is a method of
// the object, such as corral.Job.Lease. Whoever waits for a change asks Changed for a channel, which the commit of the
// next Write about that subject closes: nothing in corrald polls the store.
//
// # Where to look
//
// The file and its connections: db.go, statement.go, pages.go, lock.go (one process at a time) and migrate.go (schema
// versions). Transactions: owner.go (as whom), whole.go and tx.go. Rows: table.go, column.go (how a Go value becomes a
// column) and filter.go (what a list selects). Who wants to hear of every object that changes: watch.go. Glideins with
// endless attempts are read in brief: brief.go. Requests that may come twice: once.go. What is too long for a row is a
// file beside the database: schedule.go. Copies that are made while corrald works: snapshot.go.
// Damage, and files that disappear: sound.go.
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
	writer *sql.DB // exactly one connection: SQLite has one writer, so queue for it here, not by busy errors
	reader *sql.DB

	schedules string       // folder of those that are too long for a row
	onAct     func(Act)    // nil: none is told of
	places    []place      // of its files, which must not move; see Guard
	checking  *inspection  // that Open did not wait for
	most      access.Most  // how many objects an owner may have
	revoked   *revocations // beside the file

	mu      sync.Mutex                // guards what follows
	waiting map[Subject]chan struct{} // closed and removed by a Write that changes the subject
	watches map[*Watch]bool
}

// A Subject is what somebody may wait for: an object together with what belongs to it (the jobs of a
// glidein, the jobs and glideins of a site). ID 0 stands for all objects of its kind, and the zero
// Subject for everything.
type Subject struct {
	Object string // corral.ObjectSite and its like
	ID     int64
}

// readers is how many Views may read at the same time; more of them wait. A View takes milliseconds, and a reader that
// waits on another one costs less than a connection with its own cache.
const readers = 4

// busyTimeout covers what the one writer and the file lock do not: a person looking into the file with
// another program.
const busyTimeout = 5 * time.Second

// Open opens the database at path, creates it with mode 0600 if there is none, and migrates it to this
// program's schema. The file belongs to this process until Close or its death: a second Open is refused
// after a second with a Conflict error that names the holder, and so is a database that a newer program
// has migrated, or that is from before the first release. All pages are checked first: one that is damaged is a
// Failed error that names the way out.
func Open(ctx context.Context, path string) (*DB, error) { return openWithin(ctx, path, patience) }

// openWithin is Open with a patience of its own for the check.
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

// open opens the connections. The writer comes first, because it migrates the schema that the readers rely on.
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

// private makes sure that there is a file at path that only this user may read: it holds digests of
// tokens. SQLite gives its -wal and -shm files the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening database: %w", err)
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// pool prepares connections to the file at path. In WAL mode readers and the writer do not wait for each other, and
// with synchronous(NORMAL) a commit is in the file's log when it returns, though perhaps not on the disk yet: that is
// what the package promises, and it saves a sync for each commit.
func pool(path string, connections int, option string) *sql.DB {
	const uri = "file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
		"&_pragma=foreign_keys(1)&%s"
	name := fmt.Sprintf(uri, (&url.URL{Path: path}).EscapedPath(), busyTimeout.Milliseconds(), option)
	p := sql.OpenDB(connector{name})
	p.SetMaxOpenConns(connections)
	p.SetMaxIdleConns(connections)
	return p
}

// Close writes the log back into the file and gives the file free. No View or Write may be running.
func (d *DB) Close() error {
	d.checking.end()
	var errs []error
	for _, p := range []*sql.DB{d.reader, d.writer} { // the writer last: the last to close tidies up
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, d.revoked.close(), d.lock.Close())...)
}

// view reads at a given time: tests have times of their own.
func (d *DB) view(ctx context.Context, now time.Time, fn func(*work) error) error {
	tx, err := d.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return corral.Errorf(corral.Unavailable, "beginning to read the database: %w", err)
	}
	defer tx.Rollback() // nothing to keep: its error says nothing that matters
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
	// Every row and every entry of the history gets this one time and this one actor.
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

// Changed returns a channel that the next commit of a Write closes, if that Write changed anything about
// the subject. A caller that waits for a state of the database takes the channel first, then reads, then waits: a
// change between reading and waiting has closed the channel already and is not missed.
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

// notify wakes the callers that wait for one of the subjects. A channel is closed once and then forgotten: the next
// caller of Changed gets another one.
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

// now is the time as the database keeps it: whole milliseconds of UTC, so that what was written and what is read again
// are equal.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
