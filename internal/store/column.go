package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// The types below convert between a field and its column in both directions, so one list of them serves both reading
// and writing. Fields that need no conversion appear in that list as plain pointers.

// stamp stores a time as integer milliseconds since 1970 UTC, and the zero time as null. Integers compare and sort in
// SQL like the times themselves, regardless of a driver's text format.
type stamp struct{ t *time.Time }

// at wraps the field of a column whose name ends with _at_ms.
func at(t *time.Time) stamp { return stamp{t} }

func (s stamp) Value() (driver.Value, error) {
	if s.t.IsZero() {
		return nil, nil
	}
	return s.t.UnixMilli(), nil
}

func (s stamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*s.t = time.Time{}
	case int64:
		*s.t = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("%T is not a time", src)
	}
	return nil
}

// span stores a duration as integer milliseconds.
type span struct{ d *corral.Seconds }

// ms wraps the field of a column whose name ends with _ms and that is not a time.
func ms(d *corral.Seconds) span { return span{d} }

func (s span) Value() (driver.Value, error) {
	return time.Duration(*s.d).Milliseconds(), nil
}

func (s span) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return fmt.Errorf("%T is not a duration", src)
	}
	*s.d = corral.Seconds(time.Duration(v) * time.Millisecond)
	return nil
}

// optional stores the zero value as null.
type optional[T ~string | ~int64] struct{ v *T }

// orNull wraps the field of a column that may refer to another row, or that is set only in some states.
func orNull[T ~string | ~int64](v *T) optional[T] { return optional[T]{v} }

func (o optional[T]) Value() (driver.Value, error) {
	var zero T
	if *o.v == zero {
		return nil, nil
	}
	return driver.DefaultParameterConverter.ConvertValue(*o.v)
}

func (o optional[T]) Scan(src any) error {
	var n sql.Null[T]
	err := n.Scan(src)
	*o.v = n.V
	return err
}

// document stores a value as JSON text: maps, lists and structs that are only read as a whole or with SQLite's
// json_each. A nil map or pointer is stored as null.
type document[T any] struct{ v *T }

// asJSON wraps the field of a column that holds a document.
func asJSON[T any](v *T) document[T] { return document[T]{v} }

func (d document[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(*d.v)
	if err != nil || string(b) == "null" {
		return nil, err
	}
	return string(b), nil
}

func (d document[T]) Scan(src any) error {
	var v T
	if text, ok := src.(string); ok {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
	}
	*d.v = v
	return nil
}
