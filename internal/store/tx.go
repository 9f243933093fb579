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

// A Tx is one transaction. It belongs to the goroutine that runs the function it was passed to.
//
// Methods that take an id return a NotFound error if the object does not exist. A method that returns an error has
// changed nothing; an error of the database itself also keeps the whole Write from committing.
type Tx struct {
	*work
	asker    string // names are resolved as this owner's; "" in a WholeTx
	sees     string // the owner whose rows are visible; "" if all are
	everyone bool   // all rows are visible
}

// work holds the state of a transaction that does not depend on the owner.
type work struct {
	ctx     context.Context // the context of View or Write; valid as long as the transaction
	tx      *sql.Tx
	now     time.Time
	actor   string
	most    access.Most // limits on the number of an owner's objects
	wrote   bool
	why     string           // the reason for creations, recorded in the history
	acts    []Act            // acts of corrald itself
	touched map[Subject]bool // subjects that were written about
	revoked *revocations     // the list beside the database
	lines   []string         // lines to add to the list before the commit
	broken  error            // the first database error: a half-done method must not be committed
}

// Now returns the time of the transaction: UTC, whole milliseconds, constant for its duration.
func (t *Tx) Now() time.Time { return t.now }

// Actor returns the actor on whose behalf the transaction writes; "" in a View.
func (t *Tx) Actor() string { return t.actor }

// touch records the subjects of a write, for notify: the object itself, and all objects of its kind.
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

// row scans the single row of a query's result into dest; it returns sql.ErrNoRows if there is none.
func (t *Tx) row(query string, args []any, dest ...any) error {
	err := t.tx.QueryRowContext(t.ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return t.fail(err)
}

// rows calls scan for each row of a query's result.
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

// collect returns a T for each row of a query's result. fields returns the fields of a T in the order of the columns.
func collect[T any](t *Tx, query string, args []any, fields func(*T) []any) (list []T, err error) {
	err = t.rows(query, args, func(rows *sql.Rows) error {
		list = append(list, *new(T))
		return rows.Scan(fields(&list[len(list)-1])...)
	})
	return list, err
}

// fail records a database error and returns it, as Unavailable if it may be temporary. The record keeps Write from
// committing: otherwise a caller that continues after a database error would leave half of a change.
func (t *Tx) fail(err error) error {
	if err != nil && mayPass(t.ctx, err) {
		err = &corral.Error{Kind: corral.Unavailable, Err: err}
	}
	if t.broken == nil {
		t.broken = err
	}
	return err
}

// mayPass reports whether err is temporary and does not result from the request itself.
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

// after returns the transaction's time, but no earlier than an object's last change: if the clock is set back, an
// object's times must stay in order.
func (t *Tx) after(updated time.Time) time.Time {
	return latest(t.now, updated)
}

// latest returns the latest of some times.
func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, at := range times {
		if at.After(last) {
			last = at
		}
	}
	return last
}
