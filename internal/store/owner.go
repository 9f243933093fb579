package store

import (
	"cmp"
	"context"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// Each transaction is opened either on behalf of one owner or for all owners, and sees only the corresponding rows.
//
// An Owner opens transactions for one owner: other owners' rows are not found by id or by name and appear in no list.
// A loop of corrald opens transactions for the owner on whose behalf it works, and a request opens them for its caller
// (Caller). So code need not compare owners, and code that forgets to do so neither shows nor changes another owner's
// data.
//
// A Whole opens transactions that see the rows of all owners. It is a separate type with only the methods that
// corrald's loops need to find the objects to serve, to count objects and to delete old data. It finds nothing by
// name and changes no object that has an owner. internal/archtest lists the packages that may open one.
//
// Which of them to open:
//
//   - a request: DB.Request, with the request's context, which contains the caller;
//   - a loop that serves objects: DB.Whole to list them, then DB.Owner for each, with the owner in its row;
//   - a message from a pilot: DB.Whole to find the attempt's owner by its tag, then DB.Owner;
//   - packages and mirrors: DB.Shared.
//
// An id may be kept from one transaction to the next; a name may not, because it can later refer to another object. So
// rows refer to other objects by id. Only internal/work/admit creates objects that have an owner, and it refuses those
// that refer to another owner's object (access.MayUse): an administrator can find a user's site but cannot request
// anything there in their own name, because it would run with the user's key.
//
// Rows without an owner column belong to a row that has one: a job belongs to its site. History, lost nodes, promises
// and spendings are requested by the id of such a row, which the caller has found first.

// An Owner opens transactions on behalf of one owner. The zero value opens none.
type Owner struct {
	db       *DB
	asker    string // names are resolved as this owner's
	sees     string // the owner whose rows are visible; "" if all are
	everyone bool   // on behalf of an administrator, who sees all rows
}

// noOwner is a name that owns no objects: owners' names never begin with a hyphen.
const noOwner = "-"

// Owner returns an Owner that opens transactions on behalf of the named owner.
func (d *DB) Owner(name string) Owner {
	return Owner{db: d, asker: name, sees: cmp.Or(name, noOwner)}
}

// Shared returns an Owner for data that does not belong to one owner: packages and mirrors, which all owners share,
// and the answers to requests.
func (d *DB) Shared() Owner { return d.Owner(noOwner) }

// Caller returns an Owner for a request. An administrator's transactions see the rows of all owners.
func (d *DB) Caller(c access.Caller) Owner {
	o := d.Owner(c.Name)
	if c.IsAdministrator() {
		o.sees, o.everyone = "", true
	}
	return o
}

// Request is Caller for the caller in a request's context. Without a caller the transactions see nothing.
func (d *DB) Request(ctx context.Context) Owner {
	c, ok := access.From(ctx)
	if !ok {
		return d.Shared()
	}
	return d.Caller(c)
}

// View calls fn with a snapshot of the database that no Write changes. It returns fn's error unchanged. Any attempt
// to write fails. The Tx is invalid after fn returns.
func (o Owner) View(ctx context.Context, fn func(*Tx) error) error {
	return o.db.view(ctx, now(), func(w *work) error { return fn(w.as(o)) })
}

// Write calls fn in the one write transaction and commits its changes on behalf of actor, which must not be empty. If
// fn returns an error or panics, if one of its statements failed, or if ctx ends first, nothing is changed; fn's
// error is returned unchanged. An Unavailable error means that the database could not begin or commit, and again
// nothing was changed.
//
// Other Writes wait in the meantime, so fn must not wait for anything but the database and must never call Write.
func (o Owner) Write(ctx context.Context, actor string, fn func(*Tx) error) error {
	return o.db.write(ctx, now(), actor, func(w *work) error { return fn(w.as(o)) })
}

// Changed is DB.Changed.
func (o Owner) Changed(about Subject) <-chan struct{} { return o.db.Changed(about) }

// as returns the transaction with an owner's view of the rows.
func (w *work) as(o Owner) *Tx {
	return &Tx{work: w, asker: o.asker, sees: o.sees, everyone: o.everyone}
}

// Read returns the value that fn reads in one view of the database.
func Read[T any](ctx context.Context, o Owner, fn func(*Tx) (T, error)) (found T, err error) {
	err = o.View(ctx, func(tx *Tx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Done returns the error of a change whose result is not needed.
func Done[T any](_ T, err error) error { return err }
