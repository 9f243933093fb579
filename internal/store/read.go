package store

import "context"

// Read returns what fn finds in one view of the database.
func Read[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (found T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Done is the error of a change whose result nobody needs.
func Done[T any](_ T, err error) error { return err }
