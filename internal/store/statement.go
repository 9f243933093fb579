package store

import (
	"context"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// SQLite compiles each statement before it runs it, and for corrald's small statements compiling takes longer than
// running. So a connection keeps its compiled statements. The cache is below database/sql: a sql.Stmt would have to
// be prepared before a transaction begins, on another connection, and the writer has only one.

// statementsKept is the number of statements that a connection keeps. There are about two hundred distinct texts; only
// the possible combinations of a filter's parts add more.
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

// A conn is the subset of the SQLite driver's methods that database/sql may use. It omits the methods that run queries
// without preparing them, so that database/sql prepares each query.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
}

// A connection is used by one goroutine at a time, which database/sql ensures.
type connection struct {
	conn
	kept map[string]*statement // cached statements by text
}

// PrepareContext returns the cached statement. A statement whose rows are still being read cannot run a second time;
// in that case a second one is compiled and not cached.
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

// room makes room for one more statement: if the cache is full, it closes a statement that is not in use.
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

// Close also closes the statements.
func (c *connection) Close() error {
	var errs []error
	for _, s := range c.kept {
		errs = append(errs, s.stmt.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// A stmt is a statement compiled by the SQLite driver.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// A statement is a cached statement, which stays compiled when it is closed.
type statement struct {
	stmt
	busy bool
}

// Close is called after the last row has been read.
func (s *statement) Close() error {
	s.busy = false
	return nil
}
