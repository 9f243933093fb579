package admit

import (
	"cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A claim is a request for one row. Its fields are checked in order; a nil function is skipped.
type claim struct {
	owner    string       // owner of the row
	usable   func() error // refuses named objects that the owner may not use
	possible func() error // refuses an invalid request, and one that cannot be satisfied now
	quotas   []string     // the access.Quotas against which the row counts
	taken    func() error // refuses a name already in use; the store also checks this, but after the quotas
}

// admitted stores the row of a claim if all its checks pass.
func admitted[T any](tx *store.Tx, c claim, row func() (T, error)) (T, error) {
	if err := c.ask(tx); err != nil {
		return *new(T), err
	}
	return row()
}

// ask returns the error of the first check that fails.
//
// A policy belongs here, after the quotas. It would decide on a request that could otherwise be granted, based on the
// claim and on the owner's other objects, which tx can read.
func (c claim) ask(tx *store.Tx) error {
	if err := active(tx, c.owner); err != nil {
		return err
	}
	for _, question := range []func() error{c.usable, c.possible} {
		if question == nil {
			continue
		}
		if err := question(); err != nil {
			return err
		}
	}
	for _, q := range c.quotas {
		if err := tx.Room(q, c.owner, 1); err != nil {
			if c.taken != nil { // report the conflict instead: more room would not resolve it
				err = cmp.Or(c.taken(), err)
			}
			return err
		}
	}
	return nil
}

// active refuses an owner whose account is not ACTIVE.
func active(tx *store.Tx, owner string) error {
	refusal, err := tx.Refusal(owner)
	if err == nil && refusal != "" {
		err = corral.ErrorAt(corral.Forbidden, "owner", "%s", refusal)
	}
	return err
}
