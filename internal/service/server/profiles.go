package server

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/planning"
)

// profileHandlers answer requests about profiles of tasks. The sources of a profile are read and merged outside any
// transaction; the transaction checks that the profile was not changed meanwhile.
type profileHandlers struct {
	rest.Resource[corral.Profile]
	shelf planning.Shelf
}

// newProfiles returns handlers that store profiles in the adapter's store.
func newProfiles(a *rest.Adapter) *profileHandlers {
	return &profileHandlers{shelf: planning.Shelf{DB: a.DB}, Resource: rest.Resource[corral.Profile]{
		Adapter: a,
		Object:  corral.ObjectProfile,
		ID:      func(p corral.Profile) int64 { return int64(p.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Profile, error) {
			return rest.Referred("profile", c.Param("profile"), tx.Profile, func(name string) (corral.Profile, error) {
				return tx.ProfileNamed(c.Actor(), name)
			})
		},
	}}
}

// routes returns the routes of profiles.
func (h *profileHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/profiles", h.Pages((*store.Tx).Profiles), "all", "owner", "after", "limit"),
		rest.Post("/v1/profiles", h.create).WithBody(api.MaxProfileBody), // it contains the profile's sources
		rest.Get("/v1/profiles/:profile", h.Get),
		rest.Delete("/v1/profiles/:profile", h.remove),
		rest.Get("/v1/profiles/:profile/history", h.History, "after", "limit"),
	}
}

// create stores a profile or extends an existing one. The answer omits the document, which may be megabytes long and
// would be stored under the request's key.
func (h *profileHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewProfile) (rest.Step[corral.Profile], error) {
		var row corral.Profile
		var was string
		err := admit.CheckProfile(in)
		if err == nil {
			row, was, err = h.shelf.Profile(ctx, c.Actor(), in)
		}
		if err != nil {
			return rest.Step[corral.Profile]{}, err
		}
		return rest.Only(func(tx *store.Tx) (p corral.Profile, err error) {
			p, err = admit.Profile(tx, row, was)
			p.Document = nil
			return p, rest.Placed(corral.Conflict, "name", err)
		})
	})
}

// remove deletes a profile and its document permanently.
func (h *profileHandlers) remove(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, p corral.Profile) (corral.Profile, error) {
		if p.State == corral.ProfileDeleted {
			return p, nil
		}
		return tx.DeleteProfile(p.ID, "removal was requested")
	})
}
