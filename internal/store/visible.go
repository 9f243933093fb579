package store

import (
	"github.com/corral-pilot/corral"
)

// everywhere lets fn see the rows of all owners, for checks that must not depend on ownership, such as names and
// folders that must be unique. Rows that fn finds must not appear in an answer.
func everywhere(t *Tx, fn func(*Tx) error) error {
	return fn(&Tx{work: t.work, asker: t.asker, everyone: true})
}

// seen returns the source to select rows from: the table, or its rows that the owner can see. SQLite reads that
// subset with the table's indexes.
func (tb table[T]) seen(t *Tx) (from string, args []any) { return t.seen(tb.name, tb.owner) }

// seen returns the source to select a table's rows from. owner is the expression for a row's owner, or "" if the rows
// have none.
func (t *Tx) seen(table, owner string) (from string, args []any) {
	if owner == "" || t.everyone {
		return table, nil
	}
	return "(select * from " + table + " where " + owner + " = ?) as " + table, []any{t.sees}
}

// owned narrows a hand-written query over an owned table, as seen does for other queries.
func (c *conditions) owned(t *Tx) {
	if !t.everyone {
		c.add("owner = ?", t.sees)
	}
}

// seesOwner returns a condition for queries over several tables: the owner in a column must be the visible one.
func (t *Tx) seesOwner(column string) (term string, args []any) {
	if t.everyone {
		return "true", nil
	}
	return column + " = ?", []any{t.sees}
}

// named returns the row that currently has a name. Names are unique per owner, so there may be several matches. A
// caller's own object takes precedence. An administrator without an object of that name gets the only match; if there
// are several, the result is a Conflict error that asks for an id.
func named[T any](t *Tx, tb table[T], name string, owner func(T) string) (T, error) {
	c := where("name = ?", name)
	c.filter(Filter{})
	rows, err := tb.list(t, c)
	if err == nil && len(rows) == 0 {
		err = corral.NoSuch(tb.noun, name)
	}
	if err != nil {
		return *new(T), err
	}
	for _, row := range rows {
		if owner(row) == t.asker {
			return row, nil
		}
	}
	if len(rows) > 1 {
		return *new(T), corral.Errorf(corral.Conflict, "%d owners have a %s %s: give its id instead", len(rows),
			tb.noun, name)
	}
	return rows[0], nil
}
