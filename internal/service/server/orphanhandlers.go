package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// orphanHandlers answer requests about the orphans of sites.
type orphanHandlers struct {
	rest.Resource[corral.Site]
	reach *siteaccess.Reach
}

// newOrphans returns handlers that use r to connect to the sites found by the resource.
func newOrphans(r *siteaccess.Reach, of rest.Resource[corral.Site]) *orphanHandlers {
	return &orphanHandlers{Resource: of, reach: r}
}

// Routes returns the routes below a site.
func (h *orphanHandlers) Routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/sites/:site/orphans", h.list),
		rest.Post("/v1/sites/:site/orphans", h.settle),
	}
}

// at connects to the site that the path names, finds its orphans, and calls do.
func (h *orphanHandlers) at(
	ctx context.Context, c *rest.Call, do func(context.Context, corral.Site, gridsite.Access, []found) error,
) error {
	site, err := h.Load(ctx, c)
	if err != nil {
		return err
	}
	if site.State == corral.SiteDeleted {
		return corral.ErrorAt(corral.Conflict, "site", "%s is %s", site.Name, site.State)
	}
	return h.UntilStop(ctx, func(ctx context.Context) error {
		access, err := h.reach.Open(ctx, site)
		if err != nil {
			return err
		}
		defer access.Head.Close()
		limited, cancel := context.WithTimeoutCause(ctx, lookTime,
			corral.Errorf(corral.Unavailable, "site %s has given no answer for %s", site.Name, lookTime))
		defer cancel()
		all, err := look(limited, h.DB, site, access)
		if err != nil {
			return err
		}
		return do(ctx, site, access, all)
	})
}

// list answers with the orphans of a site.
func (h *orphanHandlers) list(c *rest.Call) error {
	var all []api.Orphan
	err := h.at(c.Context(), c, func(_ context.Context, _ corral.Site, _ gridsite.Access, found []found) error {
		for _, o := range found {
			all = append(all, o.Orphan)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(rest.Whole(all, ""))
}

// settle adopts or cancels orphans. Jobs to be cancelled are ended before their end is recorded. A crash in between
// leaves no record half done: the remaining jobs appear as orphans again.
func (h *orphanHandlers) settle(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(
		ctx context.Context, in api.SettleOrphans,
	) (step rest.Step[api.List[api.Orphan]], err error) {
		if !slices.Contains(api.OrphanFates, in.Do) {
			return step, corral.ErrorAt(corral.Invalid, "do", "%.40q is not one of %s", in.Do,
				strings.Join(api.OrphanFates, ", "))
		}
		err = h.at(ctx, c, func(ctx context.Context, site corral.Site, access gridsite.Access, all []found) error {
			chosen, err := choose(in, all)
			if err != nil {
				return err
			}
			if in.Do == api.AdoptOrphans {
				step.Write = adopting(site, cmp.Or(in.Cluster, "default"), chosen)
				return nil
			}
			limited, stop := context.WithTimeout(ctx, endTime)
			defer stop()
			gone, err := cancel(limited, access, chosen)
			step.Write = cancelled(site, gone)
			return err
		})
		return step, err
	})
}

// choose returns the chosen orphans: those with the given tags, each of which must be a suitable orphan, or, if no tags
// are given, all suitable ones.
func choose(in api.SettleOrphans, all []found) (chosen []found, err error) {
	fit := func(o found) bool { return in.Do != api.AdoptOrphans || o.Kept == "" }
	if len(in.Tags) == 0 {
		return slices.DeleteFunc(all, func(o found) bool { return !fit(o) }), nil
	}
	for _, tag := range in.Tags {
		i := slices.IndexFunc(all, func(o found) bool { return o.Tag == tag })
		switch {
		case i < 0:
			return nil, corral.ErrorAt(corral.NotFound, "tags", "%.130q is not an orphan of the site", tag)
		case !fit(all[i]):
			return nil, corral.ErrorAt(corral.Conflict, "tags", "%s cannot be adopted: %s", tag, all[i].Kept)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// adopting returns the change that records orphans as attempts of glideins, for an embedded cluster.
func adopting(
	site corral.Site, ref string, chosen []found,
) func(*store.Tx) (api.List[api.Orphan], error) {
	return func(tx *store.Tx) (list api.List[api.Orphan], err error) {
		cluster, err := rest.Referred("cluster", ref, tx.Cluster, tx.ClusterNamed)
		if err != nil {
			return list, err
		}
		if cluster.Owner != site.Owner {
			return list, corral.ErrorAt(corral.Conflict, "cluster", "the site belongs to %s, and cluster %s to %s: "+
				"name a cluster of %s by its id", site.Owner, cluster.Name, cluster.Owner, site.Owner)
		}
		if cluster.Kind != corral.Embedded {
			return list, corral.ErrorAt(corral.Conflict, "cluster", "the workers of pilots that can be adopted join a "+
				"cluster of kind %s; %s is of kind %s", corral.Embedded, cluster.Name, cluster.Kind)
		}
		var done []api.Orphan
		for _, o := range chosen {
			adopted, err := adopt(tx, site, cluster, o)
			if err != nil {
				return list, err
			}
			done = append(done, adopted)
		}
		return rest.Whole(done, ""), nil
	}
}

// cancelled returns the change that records in the site's history which orphans are gone.
func cancelled(site corral.Site, gone []api.Orphan) func(*store.Tx) (api.List[api.Orphan], error) {
	return func(tx *store.Tx) (api.List[api.Orphan], error) {
		for _, o := range gone {
			why := fmt.Sprintf("%s (the site's job %s, %s) was unknown here and has been cancelled", o.Tag,
				cmp.Or(o.SiteJobID, "none"), o.State)
			if err := tx.Log(corral.ObjectSite, int64(site.ID), "orphan", why); err != nil {
				return api.List[api.Orphan]{}, err
			}
		}
		return rest.Whole(gone, ""), nil
	}
}
