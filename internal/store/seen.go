package store

// Who asks decides what a transaction sees. A View or Write whose context has a caller (package access) that is a user
// reads only rows of that owner: those of others are not found, by id or by name, and are in no list. So a handler need
// not remember to compare owners, and one that forgets shows nothing. Administrators see everything, and so does
// corrald itself, whose contexts have no caller.
//
// Rows without an owner of their own (jobs, history, nodes, what is promised and spent) are reached through one that
// has: whoever asks for them by the id of a site or a glidein has found that first.

import (
	"cmp"
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/access"
)

// nobody is the owner of nothing: no owner's name begins so.
const nobody = "-"

// asked has the transaction see what the caller of ctx may see.
func (t *Tx) asked(ctx context.Context) {
	caller, ok := access.From(ctx)
	if !ok {
		return
	}
	t.asker = caller.Name
	if !caller.IsAdministrator() {
		t.sees = cmp.Or(caller.Name, nobody)
	}
}

// Everywhere has fn see the objects of all owners in a transaction, for what must not go by whose they are: names and
// folders that only one may have. What fn finds is not for the answer.
func Everywhere(t *Tx, fn func() error) error {
	sees := t.sees
	t.sees = ""
	defer func() { t.sees = sees }()
	return fn()
}

// seen is what rows are selected from: the table, or the part of it that the caller sees, which SQLite reads with the
// indexes of the table.
func (tb table[T]) seen(t *Tx) (from string, args []any) {
	if !tb.owned || t.sees == "" {
		return tb.name, nil
	}
	return "(select * from " + tb.name + " where owner = ?) as " + tb.name, []any{t.sees}
}

// owned narrows a query over an owned table that is written out, as seen does it for others.
func (c *conditions) owned(t *Tx) {
	if t.sees != "" {
		c.add("owner = ?", t.sees)
	}
}

// seesOwner is a condition for queries over several tables: the caller sees what the owner in a column has.
func (t *Tx) seesOwner(column string) (term string, args []any) {
	if t.sees == "" {
		return "true", nil
	}
	return column + " = ?", []any{t.sees}
}

// named returns the row that has a name now. Each owner has names of their own, so there may be several: who asks means
// their own one. An administrator who has none of that name means the only one that there is; of several it is a
// Conflict error, which asks for an id.
func named[T any](t *Tx, tb table[T], name string, owner func(T) string) (T, error) {
	var c conditions
	c.add("name = ?", name)
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
		return *new(T), corral.Errorf(corral.Conflict, "%d owners have a %s %s: name it by its id", len(rows), tb.noun,
			name)
	}
	return rows[0], nil
}
