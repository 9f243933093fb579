package store

import (
	"context"
	"time"
)

// ViewAt and WriteAt are View and Write at another time than the present.
func (d *DB) ViewAt(ctx context.Context, at time.Time, fn func(*Tx) error) error {
	return d.view(ctx, at, fn)
}

func (d *DB) WriteAt(ctx context.Context, at time.Time, actor string, fn func(*Tx) error) error {
	return d.write(ctx, at, actor, fn)
}

// OpenWithin opens a database with a patience of its own for the check of its pages.
var OpenWithin = openWithin
