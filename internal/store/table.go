package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral"
)

// A table binds one SQL table to the type of its rows. fields lists where a row's values live, in the
// order of columns and then of joined: one list for reading and for writing. Whoever waits for one of the
// subjects that a row is about is woken when the row is written.
type table[T any] struct {
	noun    string // in error messages and in history
	name    string
	columns string // stored; the id is the first
	joined  string // read along with them: expressions, a comma before each
	fields  func(*T) []any
	about   func(T) []Subject
}

// width is how many columns are stored.
func (tb table[T]) width() int { return strings.Count(tb.columns, ",") + 1 }

// insert stores a new row and returns its id.
func (tb table[T]) insert(t *Tx, row T) (int64, error) {
	marks := strings.Repeat(", ?", tb.width())[2:]
	result, err := t.exec("insert into "+tb.name+" ("+tb.columns+") values ("+marks+")", tb.fields(&row)[:tb.width()]...)
	if err != nil {
		return 0, fmt.Errorf("inserting a %s: %w", tb.noun, err)
	}
	return result.LastInsertId()
}

// create stores a new object in its first state, with the first line of its history, and returns it as
// it was stored: times and durations are whole milliseconds from then on.
func (tb table[T]) create(t *Tx, row T, state string) (T, error) {
	var none T
	id, err := tb.insert(t, row)
	if err != nil {
		return none, err
	}
	if err := t.record(corral.Created(tb.noun, id, state)); err != nil {
		return none, err
	}
	row, err = tb.one(t, id, "id = ?", id)
	if err == nil {
		t.touch(tb.about(row))
	}
	return row, err
}

// update stores row in place of the one that has its id.
func (tb table[T]) update(t *Tx, row T) error {
	fields := tb.fields(&row)[:tb.width()]
	_, columns, _ := strings.Cut(tb.columns, ",") // not the id: to set it costs a look for rows that refer to it
	marks := strings.Repeat(", ?", tb.width()-1)[2:]
	_, err := t.exec("update "+tb.name+" set ("+columns+") = ("+marks+") where id = ?", append(fields[1:], fields[0])...)
	if err != nil {
		return fmt.Errorf("updating a %s: %w", tb.noun, err)
	}
	t.touch(tb.about(row))
	return nil
}

// A rule is one of package corral: it returns a noun as it is to be, with the lines of history, or why it must not be.
// Without lines there is nothing to change.
type rule[T any] func(T) (T, []corral.Entry, error)

// change saves what a rule makes of the row with this id, and reports whether that is anything new.
func (tb table[T]) change(t *Tx, id any, ask rule[T]) (row T, changed bool, err error) {
	var none T
	before, err := tb.one(t, id, "id = ?", id)
	if err != nil {
		return none, false, err
	}
	row, lines, err := ask(before)
	if err != nil || len(lines) == 0 {
		return row, false, err
	}
	return row, true, tb.save(t, row, lines...)
}

// set lets fn change the row with this id in ways that leave no history.
func (tb table[T]) set(t *Tx, id any, fn func(*T) error) (T, error) {
	row, err := tb.one(t, id, "id = ?", id)
	if err == nil {
		err = fn(&row)
	}
	if err != nil {
		return *new(T), err
	}
	return row, tb.update(t, row)
}

// free returns what conflict says of the row that matches where; nil if there is none.
func (tb table[T]) free(t *Tx, conflict func(T) error, where string, args ...any) error {
	other, err := tb.one(t, "", where, args...)
	switch {
	case err == nil:
		return conflict(other)
	case corral.KindOf(err) == corral.NotFound:
		return nil
	}
	return err
}

// save stores row, as a rule has changed it, with the lines of history that the rule returned.
func (tb table[T]) save(t *Tx, row T, entries ...corral.Entry) error {
	if err := tb.update(t, row); err != nil {
		return err
	}
	return t.record(entries...)
}

// one returns the row that matches where, or a NotFound error that calls it called.
func (tb table[T]) one(t *Tx, called any, where string, args ...any) (T, error) {
	var row T
	err := t.row("select "+tb.columns+tb.joined+" from "+tb.name+" where "+where, args, tb.fields(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return row, corral.NoSuch(tb.noun, called)
	}
	if err != nil {
		return row, fmt.Errorf("reading %s %v: %w", tb.noun, called, err)
	}
	return row, nil
}

// list returns the rows that c selects.
func (tb table[T]) list(t *Tx, c conditions) ([]T, error) {
	var list []T
	query := "select " + tb.columns + tb.joined + " from " + tb.name + c.clause()
	err := t.rows(query, c.args, func(rows *sql.Rows) error {
		list = append(list, *new(T))
		return rows.Scan(tb.fields(&list[len(list)-1])...)
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", tb.name, err)
	}
	return list, nil
}
