package server

import (
	"context"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// packageHandlers answer requests about worker packages. A package is found by id, by digest, or by name; if several
// have the same name, the newest is found.
type packageHandlers struct {
	rest.Resource[corral.Package]
	catalog *delivery.Catalog
}

func newPackages(a *rest.Adapter, cfg Config) *packageHandlers {
	return &packageHandlers{catalog: cfg.Catalog, Resource: rest.Resource[corral.Package]{
		Adapter: a,
		Object:  corral.ObjectPackage,
		ID:      func(p corral.Package) int64 { return int64(p.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Package, error) {
			byName := tx.PackageNamed
			ref := c.Param("package")
			if strings.HasPrefix(ref, "sha256:") {
				byName = tx.PackageOf
			}
			return rest.Referred("package", ref, tx.Package, byName)
		},
	}}
}

func (h *packageHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/packages", h.Pages((*store.Tx).Packages), listing...),
		rest.Post("/v1/packages", h.create),
		rest.Get("/v1/packages/:package", h.Get),
		rest.Delete("/v1/packages/:package", h.remove),
		rest.Post("/v1/packages/:package/verify", h.verify),
		rest.Get("/v1/packages/:package/history", h.History, paging...),
	}
}

// create imports a package. Its archive is in corrald's mirror before its row is in the store, because sites may
// fetch it as soon as the row exists.
func (h *packageHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewPackage) (rest.Step[corral.Package], error) {
		if err := admit.CheckPackage(c.Caller(), in); err != nil {
			return rest.Step[corral.Package]{}, err
		}
		p, err := rest.Until(ctx, h.Adapter, func(ctx context.Context) (corral.Package, error) {
			return h.catalog.Import(ctx, in.Source, in.Signature, in.Sign)
		})
		if err != nil {
			return rest.Step[corral.Package]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Package, error) {
			p.Owner = c.Actor()
			created, err := admit.Package(tx, p)
			return created, rest.Placed(corral.Conflict, "source", err)
		})
	})
}

// verify reads every byte of a package again and records success in its history. Wrong content causes an error, and the
// package stays in the catalog. A large archive takes a while, so the request ends when corrald stops.
func (h *packageHandlers) verify(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, _ rest.None) (rest.Step[corral.Package], error) {
		p, err := h.Load(ctx, c)
		if err == nil && p.State == corral.PackageDeleted {
			err = corral.ErrorAt(corral.Conflict, "package", "package %s is %s", p.Name, p.State)
		}
		if err == nil {
			err = h.UntilStop(ctx, func(ctx context.Context) error { return h.catalog.Verify(ctx, p) })
		}
		if err != nil {
			return rest.Step[corral.Package]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Package, error) {
			return p, tx.Log(corral.ObjectPackage, int64(p.ID), "verify", "the signature and all bytes are correct")
		})
	})
}

// remove removes an unused package. Its archive is removed after the commit: an archive without a row is only litter,
// but a row without its archive could not be served.
func (h *packageHandlers) remove(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(context.Context, rest.None) (rest.Step[corral.Package], error) {
		return rest.Step[corral.Package]{
			Write: func(tx *store.Tx) (corral.Package, error) {
				p, err := h.Find(c, tx)
				if err != nil || p.State == corral.PackageDeleted {
					return p, err
				}
				return tx.DeletePackage(p.ID, "removal was requested")
			},
			Done: func(p corral.Package) {
				if err := h.catalog.Drop(p); err != nil {
					h.Log.Warn("removing a package's archive failed", "package", p.Name, "error", err)
				}
			},
		}, nil
	})
}
