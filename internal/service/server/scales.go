package server

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/scaling"
)

// scaleHandlers answer requests about the scales of clusters. They only record the requested scale; package scaling
// acts on it.
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
// request workers there at the same time. This is checked in the transaction that starts the scale.
func (h *scaleHandlers) put(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewScale) (rest.Step[corral.Scale], error) {
		s, err := admit.ReadScale(c.Caller(), in)
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

// begin starts scaling a cluster with terms that are valid except for conditions that only the store can check.
func begin(tx *store.Tx, ref string, s corral.Scale, machine corral.SiteQueue) (corral.Scale, error) {
	cluster, err := ownCluster(tx, s.Owner, ref)
	if err != nil {
		return s, err
	}
	sites, err := sitesNamed(tx, s.Owner, s.Sites)
	if err == nil {
		_, err = provision.ReleaseOver(tx, func(p corral.Plan) bool { return p.Cluster == cluster.ID })
	}
	if err != nil {
		return s, err
	}
	return admit.Scale(tx, admit.NewScale{Terms: s, Cluster: cluster, Sites: sites, Machine: machine,
		Worker: scaling.Worker})
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
