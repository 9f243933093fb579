package server

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// mirrorHandlers answer requests about mirrors of worker packages. A mirror is a folder behind a URL, with an index
// of its packages; those signed by a trusted key are added to the catalog and stay there.
type mirrorHandlers struct {
	rest.Resource[corral.Mirror]
	catalog *delivery.Catalog
}

func newMirrors(a *rest.Adapter, cfg Config) *mirrorHandlers {
	return &mirrorHandlers{catalog: cfg.Catalog, Resource: rest.Resource[corral.Mirror]{
		Adapter: a,
		Object:  corral.ObjectMirror,
		ID:      func(m corral.Mirror) int64 { return int64(m.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Mirror, error) {
			return rest.Referred("mirror", c.Param("mirror"), tx.Mirror, tx.MirrorNamed)
		},
	}}
}

func (h *mirrorHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/mirrors", h.Pages((*store.Tx).Mirrors), listing...),
		rest.Post("/v1/mirrors", h.create),
		rest.Get("/v1/mirrors/:mirror", h.Get),
		rest.Delete("/v1/mirrors/:mirror", h.remove),
		rest.Post("/v1/mirrors/:mirror/check", h.check),
		rest.Get("/v1/mirrors/:mirror/history", h.History, paging...),
	}
}

// create adds a mirror and reads its index. A mirror whose index cannot be read is added all the same, with the
// problem as its reason, because it may be down only temporarily.
func (h *mirrorHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewMirror) (rest.Step[corral.Mirror], error) {
		m, err := admit.ReadMirror(c.Caller(), in)
		if err != nil {
			return rest.Step[corral.Mirror]{}, err
		}
		offer, problem := h.catalog.Check(ctx, m)
		return rest.Only(func(tx *store.Tx) (corral.Mirror, error) {
			m, err := admit.Mirror(tx, m)
			if err != nil {
				return m, rest.Placed(corral.Conflict, "name", err)
			}
			return checked(c, tx, m, offer, problem)
		})
	})
}

// checked records a check of a mirror. Packages on offer that the catalog lacks are added to it, identified by their
// digests: the same archive at two mirrors is one package.
func checked(c *rest.Call, tx *store.Tx, m corral.Mirror, offer []corral.Package,
	problem error) (corral.Mirror, error) {
	if problem != nil {
		return tx.CheckMirror(m.ID, nil, problem.Error())
	}
	var has []corral.PackageID
	for _, p := range offer {
		known, err := tx.PackageOf(p.Digest)
		if corral.KindOf(err) == corral.NotFound {
			p.Owner = c.Actor()
			known, err = admit.Package(tx, p)
		}
		if err != nil {
			return m, err
		}
		has = append(has, known.ID)
	}
	return tx.CheckMirror(m.ID, has, "")
}

// check reads the mirror's index again. A problem with the index becomes the mirror's reason, and its known packages
// are kept: the request has succeeded.
func (h *mirrorHandlers) check(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, _ rest.None) (rest.Step[corral.Mirror], error) {
		m, err := h.Load(ctx, c)
		if err != nil {
			return rest.Step[corral.Mirror]{}, err
		}
		offer, problem := h.catalog.Check(ctx, m)
		// The mirror may have been removed while its index was read.
		return rest.Only(func(tx *store.Tx) (corral.Mirror, error) {
			m, err := h.Find(c, tx)
			if err == nil && m.State == corral.MirrorDeleted {
				err = corral.ErrorAt(corral.Conflict, "mirror", "mirror %s is %s", m.Name, m.State)
			}
			if err != nil {
				return m, err
			}
			return checked(c, tx, m, offer, problem)
		})
	})
}

// remove deletes a mirror. Its packages stay in the catalog.
func (h *mirrorHandlers) remove(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, m corral.Mirror) (corral.Mirror, error) {
		if m.State == corral.MirrorDeleted {
			return m, nil
		}
		return tx.DeleteMirror(m.ID, "removal was requested")
	})
}
