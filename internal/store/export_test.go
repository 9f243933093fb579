package store

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
)

// ViewAt and WriteAt are View and Write at another time than the present.
func (d *DB) ViewAt(ctx context.Context, at time.Time, fn func(*Tx) error) error {
	return d.view(ctx, at, fn)
}

func (d *DB) WriteAt(ctx context.Context, at time.Time, actor string, fn func(*Tx) error) error {
	return d.write(ctx, at, actor, fn)
}

// HistoryAfter lists the entries of all objects that follow the one with this id.
func (t *Tx) HistoryAfter(id int64) ([]corral.Entry, error) {
	var c conditions
	c.add("id > ?", id)
	return entries.list(t, c)
}
