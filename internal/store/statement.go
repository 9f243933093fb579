package store

import (
	"context"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// SQLite compiles each statement before it runs it, and for the small statements of a corrald that takes longer than
// running them. So a connection keeps what it has compiled. That is done below database/sql: its own Stmt would have to
// be made before a transaction begins, on a connection of its own, and the writer has only one.

// statementsKept is how many a connection keeps. There are some two hundred texts, and more only because a filter may
// have several parts.
const statementsKept = 300

// A connector opens connections that keep their statements.
type connector struct{ name string }

func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.name)
	if err != nil {
		return nil, err
	}
	return &connection{conn: opened.(conn), kept: map[string]*statement{}}, nil
}

// A conn is what SQLite's driver can do of all that database/sql may ask. That it runs queries without preparing them
// is left out: then it is asked to prepare each.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
}

// A connection is used by one goroutine at a time: database/sql sees to it.
type connection struct {
	conn
	kept map[string]*statement // by their texts
}

// PrepareContext takes the statement that is kept. One whose rows are still being read cannot run a second time; the
// second one is compiled and not kept.
func (c *connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := c.kept[query]
	if s != nil && !s.busy {
		s.busy = true
		return s, nil
	}
	prepared, err := c.conn.PrepareContext(ctx, query)
	if err != nil || s != nil {
		return prepared, err
	}
	if err := c.room(); err != nil {
		return nil, errors.Join(err, prepared.Close())
	}
	s = &statement{stmt: prepared.(stmt), busy: true}
	c.kept[query] = s
	return s, nil
}

// room makes room for one more statement: any that is not in use goes.
func (c *connection) room() error {
	if len(c.kept) < statementsKept {
		return nil
	}
	for query, s := range c.kept {
		if !s.busy {
			delete(c.kept, query)
			return s.stmt.Close()
		}
	}
	return nil
}

// Close closes the statements too.
func (c *connection) Close() error {
	var errs []error
	for _, s := range c.kept {
		errs = append(errs, s.stmt.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// A stmt is what SQLite's driver compiles.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// A statement stays compiled when it is closed.
type statement struct {
	stmt
	busy bool
}

// Close comes after the last row was read.
func (s *statement) Close() error {
	s.busy = false
	return nil
}
