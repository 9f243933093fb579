package server

import (
	"context"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/owners"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

// ownerHandlers answer requests about owners. They only move rows: package internal/service/owners carries out the
// removal.
type ownerHandlers struct {
	rest.Resource[corral.Owner]
}

// newOwners returns handlers for the owners in the adapter's store.
func newOwners(a *rest.Adapter) *ownerHandlers {
	return &ownerHandlers{rest.Resource[corral.Owner]{
		Adapter: a,
		Object:  corral.ObjectOwner,
		ID:      func(o corral.Owner) int64 { return int64(o.ID) },
		Find:    findOwner,
		Progress: func(list string) (func(corral.Owner) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.OwnerStates)
			return u.Owner, err
		},
	}}
}

// routes returns the routes of owners.
func (h *ownerHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/owners", h.list, "all"),
		rest.Get("/v1/owners/:name", h.Get, "wait", "timeout_s"),
		rest.Post("/v1/owners/:name/suspend", h.move(corral.OwnerSuspend)),
		rest.Post("/v1/owners/:name/resume", h.move(corral.OwnerResume)),
		rest.Post("/v1/owners/:name/end", h.move(corral.OwnerEnd)),
		rest.Get("/v1/owners/:name/history", h.History, "after", "limit"),
	}
}

// findOwner finds an owner and, while its account is being ended, the objects that this waits for. Owners are referred
// to only by name: most have no record and so no id.
func findOwner(c *rest.Call, tx *store.Tx) (corral.Owner, error) {
	o, err := tx.Owner(c.Param("name"))
	if err != nil || o.State != corral.OwnerEnding {
		return o, rest.Missing("name", err)
	}
	b, err := tx.Belongings(o.Name)
	o.WaitsFor = owners.Waits(b)
	return o, err
}

// list answers with all owners at once, because there are only as many owners as people.
func (h *ownerHandlers) list(c *rest.Call) error {
	all := c.Query.Flag("all")
	if err := c.Query.Err(); err != nil {
		return err
	}
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.List[corral.Owner], error) {
		list, err := tx.Owners(all)
		return rest.Whole(list, ""), err
	})
}

// move changes the state of an account. It looks up the owner first, so that a mistyped name causes a NotFound error
// instead of creating a new account.
func (h *ownerHandlers) move(move corral.OwnerMove) func(*rest.Call) error {
	return func(c *rest.Call) error {
		return rest.Change(h.Adapter, c,
			func(_ context.Context, in api.NewOwnerState) (rest.Step[corral.Owner], error) {
				if err := checkOwnerState(c, move, in); err != nil {
					return rest.Step[corral.Owner]{}, err
				}
				return rest.Only(func(tx *store.Tx) (corral.Owner, error) {
					o, err := findOwner(c, tx)
					if err == nil {
						_, err = tx.MoveOwner(o.Name, move, in.Reason)
					}
					if err != nil {
						return o, err
					}
					return findOwner(c, tx)
				})
			})
	}
}

// checkOwnerState refuses to suspend or end accounts that could not be reinstated: corrald's own user and the caller.
// So there is always an administrator left who can undo the change.
func checkOwnerState(c *rest.Call, move corral.OwnerMove, in api.NewOwnerState) error {
	name := c.Param("name")
	switch {
	case len(in.Reason) > api.MaxReason || strings.ContainsFunc(in.Reason, func(r rune) bool { return r < ' ' }):
		return corral.ErrorAt(corral.Invalid, "reason", "want one line of at most %d bytes", api.MaxReason)
	case move == corral.OwnerResume:
		return nil
	case name == access.LocalName || name == store.Actor:
		return corral.ErrorAt(corral.Forbidden, "name", "%s is corrald's own user, who administers all others: stop "+
			"corrald instead", name)
	case name == c.Actor():
		return corral.ErrorAt(corral.Forbidden, "name", "%s is you: ask another administrator, or do it as "+
			"corrald's user at its socket", name)
	}
	return nil
}
