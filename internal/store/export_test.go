package store

import (
	"context"
	"time"
)

// ViewAt and WriteAt are View and Write at a given time, for all owners.
func (d *DB) ViewAt(ctx context.Context, at time.Time, fn func(*Tx) error) error {
	return d.view(ctx, at, func(w *work) error { return fn(w.whole().all) })
}

func (d *DB) WriteAt(ctx context.Context, at time.Time, actor string, fn func(*Tx) error) error {
	return d.write(ctx, at, actor, func(w *work) error { return fn(w.whole().all) })
}

// OpenWithin opens a database with a given time limit for the check of its pages.
var OpenWithin = openWithin
