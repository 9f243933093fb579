package admit

import (
	"cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A claim is what a request comes to: the questions that are asked before its row is stored, in the order of the
// fields. A question that is nil has no object.
type claim struct {
	owner  string // of the row
	uses   func() error
	gives  func() error
	quotas []string     // of access.Quotas: the row counts for them
	taken  func() error // the row's name is: asked where there is no room, since the store asks it of each row
}

// admitted stores the row of a claim, if it has one.
func admitted[T any](tx *store.Tx, c claim, row func() (T, error)) (T, error) {
	if err := c.ask(tx); err != nil {
		return *new(T), err
	}
	return row()
}

// ask asks the questions, and returns the first refusal.
//
// A policy, which would judge the whole claim by what else its owner has and does, is asked last, after room: it may
// count on a request that could be granted.
func (c claim) ask(tx *store.Tx) error {
	if err := served(tx, c.owner); err != nil {
		return err
	}
	for _, question := range []func() error{c.uses, c.gives} {
		if question == nil {
			continue
		}
		if err := question(); err != nil {
			return err
		}
	}
	for _, q := range c.quotas {
		if err := tx.Room(q, c.owner, 1); err != nil {
			if c.taken != nil { // then more room would be of no use
				err = cmp.Or(c.taken(), err)
			}
			return err
		}
	}
	return nil
}

// served refuses an owner whose account is not ACTIVE.
func served(tx *store.Tx, owner string) error {
	refusal, err := tx.Refusal(owner)
	if err == nil && refusal != "" {
		err = corral.ErrorAt(corral.Forbidden, "owner", "%s", refusal)
	}
	return err
}
