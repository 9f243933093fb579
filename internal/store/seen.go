package store

import (
	"github.com/corral-pilot/corral"
)

// everywhere has fn see the rows of all owners, for what must not go by whose they are: names and folders that only one
// may have. What fn finds is not for the answer.
func everywhere(t *Tx, fn func(*Tx) error) error {
	return fn(&Tx{work: t.work, asker: t.asker, everyone: true})
}

// seen is what rows are selected from: the table, or the part of it that the owner sees, which SQLite reads with the
// indexes of the table.
func (tb table[T]) seen(t *Tx) (from string, args []any) { return t.seen(tb.name, tb.owner) }

// seen is what rows of a table are selected from, whose owner an expression has; "": they belong to no owner.
func (t *Tx) seen(table, owner string) (from string, args []any) {
	if owner == "" || t.everyone {
		return table, nil
	}
	return "(select * from " + table + " where " + owner + " = ?) as " + table, []any{t.sees}
}

// owned narrows a query over an owned table that is written out, as seen does it for others.
func (c *conditions) owned(t *Tx) {
	if !t.everyone {
		c.add("owner = ?", t.sees)
	}
}

// seesOwner is a condition for queries over several tables: the owner in a column must be the one who is seen.
func (t *Tx) seesOwner(column string) (term string, args []any) {
	if t.everyone {
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
