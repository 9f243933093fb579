package store

import (
	"cmp"
	"context"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// Every transaction is opened as somebody, and sees what they see.
//
// An Owner opens transactions for one owner: rows of others are not found, by id or by name, and are in no list. The
// background work of corrald opens one for the owner that it works for, a request one for its caller (Caller). So code
// need not remember to compare owners, and code that forgets shows nothing and changes nothing of another's.
//
// A Whole opens transactions that see the rows of all owners. It is a type of its own, which has only what the loops of
// corrald need to find what they serve, what is counted, and what is forgotten; it finds nothing by name and changes
// nothing that has an owner. Which packages may open one is in internal/archtest.
//
// Which of them to open:
//
//   - a request: DB.Request, with the context that has its caller;
//   - a loop that serves objects: DB.Whole to list them, then DB.Owner for each, with the owner that its row names;
//   - what a pilot says: DB.Whole to find the owner of the attempt by its tag, then DB.Owner;
//   - packages and mirrors: DB.Shared.
//
// An id may be kept from one transaction to the next; a name may not, as it can come to mean another object. So rows
// name what they point at by id, and internal/work/admit, which alone creates what has an owner, refuses what points at
// another owner's object (access.MayUse): an administrator, too, finds a user's site, and asks for nothing there in
// their own name, since it would run by the user's key.
//
// Rows without an owner of their own belong to a row that has one: a job to its site. History, what nodes lost, what is
// promised and spent is asked for by the id of such a row, which the caller has found first.

// An Owner opens transactions that work for one owner. The zero value opens none.
type Owner struct {
	db       *DB
	asker    string // whose names are meant
	sees     string // the owner whose rows are seen; "" if all are
	everyone bool   // an administrator asks, who sees all rows
}

// noOwner is the owner of no object: no owner's name begins with a hyphen.
const noOwner = "-"

// Owner returns what opens transactions for an owner.
func (d *DB) Owner(name string) Owner {
	return Owner{db: d, asker: name, sees: cmp.Or(name, noOwner)}
}

// Shared returns what opens transactions for what has no owner's rows in it: packages and mirrors, which all owners
// share, and the answers to requests.
func (d *DB) Shared() Owner { return d.Owner(noOwner) }

// Caller returns what opens transactions for a request. An administrator's sees the rows of all owners.
func (d *DB) Caller(c access.Caller) Owner {
	o := d.Owner(c.Name)
	if c.IsAdministrator() {
		o.sees, o.everyone = "", true
	}
	return o
}

// Request is Caller for the caller of a request's context. Without one the transactions see nothing.
func (d *DB) Request(ctx context.Context) Owner {
	c, ok := access.From(ctx)
	if !ok {
		return d.Shared()
	}
	return d.Caller(c)
}

// View calls fn with a picture of the database that no Write changes meanwhile. It returns fn's error
// unchanged. Any attempt to write fails. The Tx is of no use after fn returns.
func (o Owner) View(ctx context.Context, fn func(*Tx) error) error {
	return o.db.view(ctx, now(), func(w *work) error { return fn(w.as(o)) })
}

// Write calls fn in the one write transaction and commits what it did on behalf of actor, which must not
// be empty. If fn returns an error or panics, if a statement of its failed, or if ctx ends first,
// nothing is changed; fn's error is returned unchanged. An Unavailable error means that the database
// could not begin or commit: nothing was changed either.
//
// Other Writes wait meanwhile, so fn must not wait for anything but the database, and never call Write.
func (o Owner) Write(ctx context.Context, actor string, fn func(*Tx) error) error {
	return o.db.write(ctx, now(), actor, func(w *work) error { return fn(w.as(o)) })
}

// Changed is that of a DB.
func (o Owner) Changed(about Subject) <-chan struct{} { return o.db.Changed(about) }

// as returns the transaction as an owner sees it.
func (w *work) as(o Owner) *Tx {
	return &Tx{work: w, asker: o.asker, sees: o.sees, everyone: o.everyone}
}

// Read returns what fn finds in one view of the database.
func Read[T any](ctx context.Context, o Owner, fn func(*Tx) (T, error)) (found T, err error) {
	err = o.View(ctx, func(tx *Tx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Done is the error of a change whose result is not needed.
func Done[T any](_ T, err error) error { return err }
