package server

import (
	"cmp"
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/ensembles"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// ensembleConfig holds the parts of corrald that the handlers depend on.
type ensembleConfig struct {
	Runs    *run.Manager
	Shelf   ensembles.Shelf
	Machine corral.SiteQueue // this machine, described as a queue of the batch system fork

	// Where finds the site and the cluster of an owner's request for a glidein. CanJoin returns an error with the
	// reason if workers at that site cannot join the cluster.
	Where   func(tx *store.Tx, owner string, in api.NewGlidein) (corral.Site, corral.Cluster, error)
	CanJoin func(ctx context.Context, owner string, in api.NewGlidein) error

	// Ahead checks a request by the fields that precede its workflows.
	Ahead func(*rest.Call, rest.Head) error
}

// ensembleHandlers answer requests about ensembles. Workflows are parsed, and the decision rule is chosen, outside
// any transaction; after the row is created, package internal/work/ensembles does the rest.
type ensembleHandlers struct {
	rest.Resource[record.Ensemble]
	cfg ensembleConfig
}

// newEnsembles returns handlers for the ensembles in the adapter's store.
func newEnsembles(a *rest.Adapter, cfg ensembleConfig) *ensembleHandlers {
	return &ensembleHandlers{cfg: cfg, Resource: rest.Resource[record.Ensemble]{
		Adapter: a,
		Object:  corral.ObjectEnsemble,
		ID:      func(e record.Ensemble) int64 { return int64(e.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (record.Ensemble, error) {
			return rest.Numbered(c, tx.Ensemble)
		},
		Progress: func(list string) (func(record.Ensemble) api.Progress, error) {
			u, err := api.ParseUntil(list, record.States)
			return u.Ensemble, err
		},
	}}
}

// routes returns the routes of ensembles.
func (h *ensembleHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/ensembles", h.Pages((*store.Tx).Ensembles), "all", "owner", "after", "limit"),
		rest.Post("/v1/ensembles", h.create).WithBody(api.MaxRunBody). // it contains the workflows
										Ahead(h.Adapter, h.cfg.Ahead),
		rest.Get("/v1/ensembles/:id", h.Get, "wait", "timeout_s"),
		rest.Delete("/v1/ensembles/:id", h.remove),
		rest.Post("/v1/ensembles/:id/cancel", h.cancel),
		rest.Get("/v1/ensembles/:id/history", h.History, "after", "limit"),
	}
}

// create creates an ensemble. Its workflows are on the shelf before its row is committed.
func (h *ensembleHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewEnsemble) (rest.Step[record.Ensemble], error) {
		x, err := rest.Until(ctx, h.Adapter, func(ctx context.Context) (ensembles.Drafted, error) {
			return h.draft(ctx, c.Caller(), in)
		})
		if err == nil {
			err = h.cfg.Shelf.Put(&x)
		}
		if err != nil {
			return rest.Step[record.Ensemble]{}, err
		}
		return rest.Step[record.Ensemble]{
			Write: func(tx *store.Tx) (record.Ensemble, error) { return beginEnsemble(tx, x.Row) },
			Undo: func() {
				if err := h.cfg.Shelf.Remove(x.Row.Files); err != nil {
					h.Log.Error("removing the workflows of an ensemble that was not created failed", "error", err)
				}
			},
		}, nil
	})
}

// draft checks a request and returns its row.
func (h *ensembleHandlers) draft(
	ctx context.Context, who access.Caller, in api.NewEnsemble,
) (x ensembles.Drafted, err error) {
	if err = admit.CheckEnsemble(who, &in, time.Now()); err != nil {
		return x, err
	}
	in.Cluster = cmp.Or(in.Cluster, "default")
	var cluster corral.Cluster
	var facts provision.Facts
	err = h.DB.Request(ctx).View(ctx, func(tx *store.Tx) (err error) {
		if in.Site, err = siteOfEnsemble(tx, who.Name, in.Site); err != nil {
			return err
		}
		var site corral.Site
		site, cluster, err = h.cfg.Where(tx, who.Name, api.NewGlidein{Site: in.Site, Cluster: in.Cluster})
		if err == nil {
			facts, err = provision.ReadFacts(tx, site, h.cfg.Machine, 0)
		}
		return err
	})
	if err == nil {
		err = h.cfg.CanJoin(ctx, who.Name, api.NewGlidein{Site: in.Site, Cluster: in.Cluster})
	}
	if err = cmp.Or(err, request.CheckStream(in.Options, cluster)); err != nil {
		return x, err
	}
	if x, err = ensembles.Draft(ctx, in, facts, time.Now()); err != nil {
		return x, err
	}
	x.Row.Owner, x.Row.Cluster = who.Name, cluster.ID
	for k, r := range x.Runs {
		if err := h.cfg.Runs.Check(ctx, r, x.Flows[k]); err != nil {
			return x, err
		}
	}
	return x, nil
}

// siteOfEnsemble returns the site for an ensemble: the named one, or the owner's only one.
func siteOfEnsemble(tx *store.Tx, owner, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	sites, err := tx.Sites(store.Filter{})
	var own []string
	for _, s := range sites {
		if s.Owner == owner {
			own = append(own, s.Name)
		}
	}
	if err == nil && len(own) != 1 {
		err = corral.ErrorAt(corral.Invalid, "site", "name one: there are %d", len(own))
	}
	if err != nil {
		return "", err
	}
	return own[0], nil
}

// beginEnsemble creates the row, unless something else requests workers for the cluster.
func beginEnsemble(tx *store.Tx, row record.Ensemble) (record.Ensemble, error) {
	if _, err := provision.ReleaseOver(tx, func(p corral.Plan) bool { return p.Cluster == row.Cluster }); err != nil {
		return row, err
	}
	return admit.Ensemble(tx, row)
}

// cancel requests the end of an ensemble; the keeper does the rest. An ensemble that is already ending is returned
// unchanged.
func (h *ensembleHandlers) cancel(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, e record.Ensemble) (record.Ensemble, error) {
		if e.State != record.Running {
			return e, nil
		}
		return tx.MoveEnsemble(e.ID, record.Stop, "cancelled by "+c.Actor())
	})
}

// remove hides the record of an ensemble that has ended. Its runs and glideins stay.
func (h *ensembleHandlers) remove(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, e record.Ensemble) (record.Ensemble, error) {
		if e.State == record.Deleted {
			return e, nil
		}
		return tx.MoveEnsemble(e.ID, record.Remove, "removal was requested")
	})
}
