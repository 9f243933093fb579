package server

import (
	"cmp"
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/scaling"
)

// scaleHandlers answer requests about the scales of clusters. They only record what is wanted; package scaling acts
// on it.
type scaleHandlers struct {
	*rest.Adapter
	glideins *glideinHandlers
}

func newScales(a *rest.Adapter, cfg Config) *scaleHandlers {
	return &scaleHandlers{a, newGlideins(a, cfg)}
}

func (h *scaleHandlers) routes() []rest.Route {
	const path = "/v1/clusters/:cluster/scale"
	return []rest.Route{rest.Get(path, h.get), rest.Put(path, h.put), rest.Delete(path, h.remove)}
}

func (h *scaleHandlers) find(c *rest.Call, tx *store.Tx) (corral.Scale, error) {
	cluster, err := clusterNamed(tx, c.Param("cluster"))
	if err != nil {
		return corral.Scale{}, err
	}
	return tx.Scale(cluster.ID)
}

func (h *scaleHandlers) get(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (corral.Scale, error) { return h.find(c, tx) })
}

// put starts scaling a cluster. A cluster has one controller: neither a second scale nor a PROVISIONED plan may
// request workers there at the same time. That is checked in the transaction that starts it.
func (h *scaleHandlers) put(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewScale) (rest.Step[corral.Scale], error) {
		s, err := request.Scale(in)
		s.Owner = c.Actor()
		for _, site := range in.Sites {
			if err == nil {
				err = h.glideins.canJoin(ctx, s.Owner, api.NewGlidein{Site: site, Cluster: c.Param("cluster")})
			}
		}
		if err != nil {
			return rest.Step[corral.Scale]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Scale, error) {
			return begin(tx, c.Param("cluster"), s, h.glideins.cfg.Machine)
		})
	})
}

// begin starts scaling a cluster with terms that are valid except for what only the store can check.
func begin(tx *store.Tx, ref string, s corral.Scale, machine corral.SiteQueue) (corral.Scale, error) {
	cluster, err := ownCluster(tx, s.Owner, ref)
	if err != nil {
		return s, err
	}
	s.Cluster = cluster.ID
	sites, err := sitesNamed(tx, s.Owner, s.Sites)
	if err != nil {
		return s, err
	}
	s.Sites, s.SiteIDs = nil, nil
	for _, site := range sites {
		s.Sites, s.SiteIDs = append(s.Sites, site.Name), append(s.SiteIDs, site.ID)
	}
	if err := scaling.Check(s, sites, cluster, machine); err != nil {
		return s, err
	}
	planned, err := provision.ReleaseOver(tx, func(p corral.Plan) bool { return p.Cluster == cluster.ID })
	if err = cmp.Or(err, provision.CheckNoEnsemble(tx, cluster.ID)); err != nil {
		return s, err
	}
	if planned != 0 {
		return s, corral.ErrorAt(corral.Conflict, "cluster",
			"plan %d requests workers of %s until its run is over; `corral plan release %[1]d` ends that", planned,
			cluster.Name)
	}
	return tx.CreateScale(s)
}

// unscaled refuses a second controller besides a cluster's scale.
func unscaled(tx *store.Tx, cluster corral.ClusterID) error {
	s, err := tx.Scale(cluster)
	switch {
	case corral.KindOf(err) == corral.NotFound:
		return provision.CheckNoEnsemble(tx, cluster)
	case err != nil:
		return err
	}
	return corral.ErrorAt(corral.Conflict, "cluster", "%s is scaled: `corral cluster scale %[1]s --off` ends that",
		s.ClusterName)
}

// remove ends a scale and releases its pilots.
func (h *scaleHandlers) remove(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(context.Context, rest.None) (rest.Step[corral.Scale], error) {
		return rest.Only(func(tx *store.Tx) (corral.Scale, error) {
			s, err := h.find(c, tx)
			if err != nil {
				return s, err
			}
			return s, scaling.Release(tx, s, "its end was requested")
		})
	})
}
