package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/worldstate"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// glideinHandlers answer requests about glideins.
//
// A request for a glidein becomes a row, which the engine turns into attempts. Requests that are known to be
// impossible are refused here, while a person waits for the answer; otherwise each attempt would fail later, after a
// wait in the site's queue.
type glideinHandlers struct {
	rest.Resource[corral.Glidein]
	cfg Config
}

func newGlideins(a *rest.Adapter, cfg Config) *glideinHandlers {
	return &glideinHandlers{cfg: cfg, Resource: rest.Resource[corral.Glidein]{
		Adapter: a,
		Object:  corral.ObjectGlidein,
		ID:      func(g corral.Glidein) int64 { return int64(g.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Glidein, error) {
			g, err := rest.Numbered(c, tx.Glidein)
			if err != nil {
				return g, err
			}
			w, err := worldstate.Of(tx, g)
			outlook := reconcile.Outlook(tx.Now(), w, g)
			g.Outlook = &outlook
			return present(cfg, g)[0], err
		},
		Progress: func(list string) (func(corral.Glidein) api.Progress, error) {
			u, err := api.ParseUntilGlidein(list)
			return u.Glidein, err
		},
	}}
}

func (h *glideinHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/glideins", h.list, slices.Concat(listing, []string{"label", "site", "cluster"})...),
		rest.Post("/v1/glideins", h.create),
		rest.Get("/v1/glideins/:id", h.Get, waiting...),
		rest.Delete("/v1/glideins/:id", h.remove, "now"),
		rest.Get("/v1/glideins/:id/history", h.history, paging...),
		rest.Get("/v1/glideins/:id/timeline", h.timeline),
		rest.Get("/v1/glideins/:id/log", h.log, "attempt", "file"),
	}
}

// list answers with a page of glideins. A site or a cluster that narrows the list may be given by name or id, as in a
// path. Resolving it reads the store, so this happens in the same view as reading the glideins.
func (h *glideinHandlers) list(c *rest.Call) error {
	labels := c.Query.Labels()
	return h.Page(c, func(tx *store.Tx, f store.Filter) (glideins []corral.Glidein, err error) {
		narrow := store.GlideinFilter{Filter: f, Labels: labels}
		if narrow.Site, err = siteFilter(tx, c.Query); err != nil {
			return nil, err
		}
		if narrow.Cluster, err = clusterFilter(tx, c.Query); err != nil {
			return nil, err
		}
		glideins, err = tx.Glideins(narrow)
		return present(h.cfg, glideins...), err
	})
}

// present adds the registered and the unreachable workers of the glideins. These are never stored, because they would
// be wrong after a crash. Each cluster is queried once, regardless of how many of its glideins are listed.
func present(cfg Config, glideins ...corral.Glidein) []corral.Glidein {
	type sum struct{ workers, cpus int }
	sums := map[corral.GlideinID]sum{}
	for _, workers := range cfg.Clusters.Registered(glideins) {
		for _, w := range workers {
			was := sums[w.Glidein]
			sums[w.Glidein] = sum{was.workers + 1, was.cpus + w.CPUs}
		}
	}
	for i := range glideins {
		g := &glideins[i]
		if !g.State.Terminal() { // otherwise no attempt is live, and listed workers are about to disappear
			g.WorkersNow, g.CPUsNow = sums[g.ID].workers, sums[g.ID].cpus
			g.Unreachable = cfg.Outages.Of(corral.ObjectGlidein, int64(g.ID))
		}
	}
	return glideins
}

// create checks a glidein in three parts: the request by itself; outside the transaction, whether there is a package
// for its workers; and, in the transaction that creates the glidein, what its site and cluster can provide, so that
// neither can be removed in between.
func (h *glideinHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewGlidein) (rest.Step[corral.Glidein], error) {
		err := admit.CheckGlidein(in, time.Now())
		if err == nil {
			err = h.canJoin(ctx, c.Actor(), in)
		}
		if err != nil {
			return rest.Step[corral.Glidein]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Glidein, error) {
			site, cluster, err := whereOf(tx, c.Actor(), in)
			if err != nil {
				return corral.Glidein{}, err
			}
			created, err := admit.Glidein(tx, admit.GlideinRequest{Request: in, Owner: c.Actor(), Site: site,
				Cluster: cluster, Machine: h.cfg.Machine})
			return created, rest.Placed(corral.Conflict, "site", err)
		})
	})
}

// whereOf finds the site and the cluster for an owner's glidein, both of the same owner. The site need not be READY:
// the glidein waits until it is. A cluster that is not ready is refused, because a stopped pool restarts only on
// request.
func whereOf(tx *store.Tx, owner string, in api.NewGlidein) (site corral.Site, cluster corral.Cluster, err error) {
	if site, err = siteNamed(tx, in.Site); err == nil {
		err = access.MayUse(owner, "site", site.Name, site.Owner)
	}
	if err == nil {
		cluster, err = ownCluster(tx, owner, cmp.Or(in.Cluster, defaultCluster))
	}
	return site, cluster, cmp.Or(err, ready(cluster))
}

// canJoin returns an error with the reason if no worker at the glidein's site could join its cluster. An embedded
// cluster accepts all workers.
func (h *glideinHandlers) canJoin(ctx context.Context, owner string, in api.NewGlidein) error {
	var site corral.Site
	var cluster corral.Cluster
	err := h.DB.Request(ctx).View(ctx, func(tx *store.Tx) (err error) {
		site, cluster, err = whereOf(tx, owner, in)
		return err
	})
	if err != nil || cluster.Kind != corral.Condor {
		return err
	}
	if err := condor.CheckFolder(site.Root); err != nil {
		return corral.ErrorAt(corral.Unsatisfiable, "site", "the root of %s cannot have workers of kind %s: %w",
			site.Name, cluster.Kind, err)
	}
	return h.cfg.Catalog.CheckGlidein(ctx, site, cluster)
}

// remove requests the end of a glidein: its workers finish their tasks or, with now, abort them. A request can only
// become stronger: a drain of a glidein that is being cancelled changes nothing.
func (h *glideinHandlers) remove(c *rest.Call) error {
	ask := corral.AskDrain
	if c.Query.Flag("now") {
		ask = corral.AskCancel
	}
	if err := c.Query.Err(); err != nil {
		return err
	}
	return h.Alter(c, func(tx *store.Tx, g corral.Glidein) (corral.Glidein, error) {
		g, err := tx.AskGlidein(g.ID, ask, "removal was requested")
		return present(h.cfg, g)[0], err
	})
}

// history answers with the histories of the glidein and its attempts together.
func (h *glideinHandlers) history(c *rest.Call) error {
	return h.Histories(c, func(tx *store.Tx) ([]store.Subject, error) {
		g, err := h.Find(c, tx)
		return append([]store.Subject{h.Subject(g)}, jobSubjects(g.Attempts)...), err
	})
}

// timeline answers with the events of the glidein's attempts, between those of its site's setup and cleanup.
func (h *glideinHandlers) timeline(c *rest.Call) error {
	return timelines(h.Adapter, c, func(tx *store.Tx) ([]corral.Job, error) {
		g, err := h.Find(c, tx)
		if err != nil {
			return nil, err
		}
		setup, cleanup, err := siteJobs(tx, g.Site)
		return slices.Concat(setup, g.Attempts, cleanup), err
	})
}

// log answers with a file that an attempt left in its folder at the site, to which corrald connects for this. The
// order is not available because it contains the token.
func (h *glideinHandlers) log(c *rest.Call) error {
	number, file := c.Query.Number("attempt"), c.Query.OneOf("file", "stdout", "stderr", "report.json")
	if err := c.Query.Err(); err != nil {
		return err
	}
	// The records are read first, and the views closed, because connecting to the site may take a minute.
	ctx := c.Context()
	g, err := h.Load(ctx, c)
	if err != nil {
		return err
	}
	job, err := attemptOf(g, int(number))
	if err != nil {
		return err
	}
	site, err := rest.View(ctx, h.DB, func(tx *store.Tx) (corral.Site, error) { return tx.Site(job.Site) })
	if err != nil {
		return err
	}
	content, err := h.cfg.Reach.JobFile(ctx, site, job, file)
	if errors.Is(err, fs.ErrNotExist) {
		return corral.ErrorAt(corral.NotFound, "file", "%s left no %s", job.Name(), file)
	}
	if err != nil {
		return err
	}
	return c.File(bytes.NewReader(content))
}

// attemptOf returns an attempt by its number, which counts from 1 over the glidein's whole life; 0 means the last
// one.
func attemptOf(g corral.Glidein, number int) (corral.Job, error) {
	for i := len(g.Attempts) - 1; i >= 0; i-- {
		if number == 0 || g.Attempts[i].Number == number {
			return g.Attempts[i], nil
		}
	}
	if number == 0 {
		return corral.Job{}, corral.ErrorAt(corral.NotFound, "attempt", "glidein %d has none yet", g.ID)
	}
	return corral.Job{}, corral.ErrorAt(corral.NotFound, "attempt", "glidein %d has none with number %d", g.ID, number)
}
