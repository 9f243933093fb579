package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
)

// A Tx is one transaction. It belongs to the goroutine that runs the function it was given to.
//
// Methods that take an id return a NotFound error if there is no such object. They change nothing when
// they return an error; an error of the database itself also keeps the whole Write from committing.
type Tx struct {
	*work
	asker    string // whose names are meant; "" in a WholeTx
	sees     string // the owner whose rows are seen; "" if all are
	everyone bool   // all rows are seen
}

// work is what a transaction has, for any owner.
type work struct {
	ctx     context.Context // of View or Write: as long as the transaction
	tx      *sql.Tx
	now     time.Time
	actor   string
	most    access.Most // how many objects an owner may have
	wrote   bool
	why     string           // something is created, in its history
	acts    []Act            // of corrald itself
	touched map[Subject]bool // what was written about
	revoked *revocations     // the list beside the database
	lines   []string         // that it is to get before the commit
	broken  error            // the first failure of the database: a half-done method must not be committed
}

// Now returns the time of the transaction: UTC, whole milliseconds, the same in all of it.
func (t *Tx) Now() time.Time { return t.now }

// Actor returns on whose behalf the transaction writes; "" in a View.
func (t *Tx) Actor() string { return t.actor }

// touch notes what was written about, for notify: the object itself, and every object of its kind.
func (t *Tx) touch(subjects []Subject) {
	for _, s := range subjects {
		t.touched[s] = true
		t.touched[Subject{Object: s.Object}] = true
	}
}

// exec runs a statement that changes rows.
func (t *Tx) exec(query string, args ...any) (sql.Result, error) {
	result, err := t.tx.ExecContext(t.ctx, query, args...)
	if err != nil {
		return nil, t.fail(err)
	}
	t.wrote = true
	return result, nil
}

// row reads the one row that query yields into dest; sql.ErrNoRows if there is none.
func (t *Tx) row(query string, args []any, dest ...any) error {
	err := t.tx.QueryRowContext(t.ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return t.fail(err)
}

// rows calls scan on each row that query yields.
func (t *Tx) rows(query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := t.tx.QueryContext(t.ctx, query, args...)
	if err != nil {
		return t.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return t.fail(err)
		}
	}
	return t.fail(rows.Err())
}

// fail notes a failure of the database and returns it, as Unavailable if it may pass. The note keeps Write from
// committing: a caller that goes on after an error of the database would otherwise leave half of a change.
func (t *Tx) fail(err error) error {
	if err != nil && mayPass(t.ctx, err) {
		err = &corral.Error{Kind: corral.Unavailable, Err: err}
	}
	if t.broken == nil {
		t.broken = err
	}
	return err
}

// mayPass reports whether err says nothing about what was asked, only about the circumstances.
func mayPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch failed.Code() & 0xff { // without the details of an extended code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// after returns the transaction's time, but not before an object's last change: a clock that was set
// back must not put an object's times out of order.
func (t *Tx) after(updated time.Time) time.Time {
	return latest(t.now, updated)
}

// latest returns the last of some times.
func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, at := range times {
		if at.After(last) {
			last = at
		}
	}
	return last
}
