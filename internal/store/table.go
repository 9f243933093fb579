package store

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A table binds one SQL table to the type of its rows. One list of columns, for reading and for writing, maps them to
// the fields of a row. Writing a row wakes the callers that wait for one of the row's subjects.
type table[T any] struct {
	noun    string // in error messages and in history
	name    string
	owner   string            // the expression for a row's owner, who alone can see it; "": all can see it
	columns func(*T) []column // the id is the first
	about   func(T) []Subject
}

// A column is a column of a table with the field that holds its value: a pointer, or one of the types in column.go. A
// name in parentheses is an expression over other tables, which is read with the row and never written.
type column struct {
	name  string
	field any
}

// namesOf returns the columns' names as an SQL list.
func namesOf(columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name
	}
	return strings.Join(list, ", ")
}

// fieldsOf returns the columns' fields, in the same order.
func fieldsOf(columns []column) []any {
	list := make([]any, len(columns))
	for i, c := range columns {
		list[i] = c.field
	}
	return list
}

// stored returns the columns that are written.
func (tb table[T]) stored(row *T) []column {
	return slices.DeleteFunc(tb.columns(row), func(c column) bool { return strings.HasPrefix(c.name, "(") })
}

// insert stores a new row and returns its id.
func (tb table[T]) insert(t *Tx, row T) (int64, error) {
	columns := tb.stored(&row)
	query := "insert into " + tb.name + " (" + namesOf(columns) + ") values (" + marks(columns) + ")"
	result, err := t.exec(query, fieldsOf(columns)...)
	if err != nil {
		return 0, fmt.Errorf("inserting a %s: %w", tb.noun, err)
	}
	return result.LastInsertId()
}

// marks lists a parameter for each column.
func marks(columns []column) string { return strings.Repeat(", ?", len(columns))[2:] }

// create stores a new object with the first entry of its history, which contains its first state, and with entries
// for subsequent events. It returns the object as stored: times and durations are in whole milliseconds.
func (tb table[T]) create(t *Tx, row T, state string, then ...corral.Entry) (T, error) {
	var none T
	id, err := tb.insert(t, row)
	if err != nil {
		return none, err
	}
	for i := range then {
		then[i].Of = id // the id was unknown when the entries were made
	}
	if err := t.record(append([]corral.Entry{t.created(tb.noun, id, state)}, then...)...); err != nil {
		return none, err
	}
	row, err = tb.one(t, id, "id = ?", id)
	if err == nil {
		t.touch(tb.about(row))
	}
	return row, err
}

// update replaces the row that has row's id. It does not set the id itself, because SQLite would then look for rows
// that refer to it.
func (tb table[T]) update(t *Tx, row T) error {
	all := tb.stored(&row)
	id, columns := all[0], all[1:]
	query := "update " + tb.name + " set (" + namesOf(columns) + ") = (" + marks(columns) + ") where id = ?"
	if _, err := t.exec(query, append(fieldsOf(columns), id.field)...); err != nil {
		return fmt.Errorf("updating a %s: %w", tb.noun, err)
	}
	t.touch(tb.about(row))
	return nil
}

// A rule is a rule of package corral: it returns the changed noun with its history entries, or an error if the change
// is not allowed. No entries mean no change.
type rule[T any] func(T) (T, []corral.Entry, error)

// change applies a rule to the row with this id, saves the result and reports whether it changed: load, rule, save.
// The rule is pure, so reconcile.World.Apply, which needs no database, uses the same one.
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

// move is change for callers that do not need to know whether the row has changed.
func (tb table[T]) move(t *Tx, id any, ask rule[T]) (T, error) {
	row, _, err := tb.change(t, id, ask)
	return row, err
}

// set lets fn change the row with this id without a history entry.
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

// setFacts lets fn set facts about the row with this id; it calls changed to update the time if any have changed.
// rest returns the part of a row that is not facts. If fn changes that part, this is a defect, and nothing is stored.
func (tb table[T]) setFacts(t *Tx, id any, fn func(*T), rest func(T) T, changed func(*T)) (T, error) {
	before, err := tb.one(t, id, "id = ?", id)
	if err != nil {
		return *new(T), err
	}
	row := before
	fn(&row)
	switch {
	case !reflect.DeepEqual(rest(row), rest(before)):
		return *new(T), corral.Errorf(corral.Internal, "setting facts of %s %v changes fields that are not facts",
			tb.noun, id)
	case reflect.DeepEqual(row, before):
		return row, nil
	}
	changed(&row)
	return row, tb.update(t, row)
}

// free returns the error from conflict for a row that matches where, or nil if there is none. A unique index enforces
// the same rule but without a readable message. Like an index, free considers the rows of all owners.
func (tb table[T]) free(t *Tx, conflict func(T) error, where string, args ...any) error {
	var other T
	err := everywhere(t, func(all *Tx) (err error) {
		other, err = tb.one(all, "", where, args...)
		return err
	})
	switch {
	case err == nil:
		return conflict(other)
	case corral.KindOf(err) == corral.NotFound:
		return nil
	}
	return err
}

// save stores row, as changed by a rule, with the history entries that the rule returned.
func (tb table[T]) save(t *Tx, row T, entries ...corral.Entry) error {
	if err := tb.update(t, row); err != nil {
		return err
	}
	return t.record(entries...)
}

// one returns the row that matches where, or a NotFound error that refers to the row as called.
func (tb table[T]) one(t *Tx, called any, where string, args ...any) (T, error) {
	var row T
	columns := tb.columns(&row)
	from, seen := tb.seen(t)
	err := t.row("select "+namesOf(columns)+" from "+from+" where "+where, append(seen, args...), fieldsOf(columns)...)
	if errors.Is(err, sql.ErrNoRows) {
		return row, corral.NoSuch(tb.noun, called)
	}
	return row, wrap.Errorf(err, "reading %s %v", tb.noun, called)
}

// filtered returns the rows that f selects.
func (tb table[T]) filtered(t *Tx, f Filter) ([]T, error) {
	var c conditions
	c.filter(f)
	return tb.list(t, c)
}

// list returns the rows that c selects, in c's order.
func (tb table[T]) list(t *Tx, c conditions) ([]T, error) {
	from, seen := tb.seen(t)
	query := "select " + namesOf(tb.columns(new(T))) + " from " + from + c.clause()
	list, err := collect(t, query, append(seen, c.args...), func(row *T) []any { return fieldsOf(tb.columns(row)) })
	return list, wrap.Errorf(err, "listing %s", tb.name)
}
