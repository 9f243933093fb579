package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) probeSite(c echo.Context) error {
	return change(s, c, http.StatusOK, func(ctx context.Context, in api.NewProbe) (step[corral.NetworkProbe], error) {
		var site corral.Site
		var cluster corral.Cluster
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			site, cluster, err = probed(c, tx, in)
			return err
		})
		if err != nil {
			return step[corral.NetworkProbe]{}, err
		}
		p, err := s.cfg.ProbeNetwork(ctx, site, cluster)
		if err != nil {
			return step[corral.NetworkProbe]{}, err
		}
		return only(func(tx *store.Tx) (corral.NetworkProbe, error) {
			return p, tx.Log(store.ObjectSite, int64(site.ID), "probe", p.String())
		})
	})
}

// probed finds the site and the cluster of a probe, if there is something to be measured.
func probed(c echo.Context, tx *store.Tx, in api.NewProbe) (site corral.Site, cluster corral.Cluster, err error) {
	if site, err = theSite(c, tx); err != nil {
		return site, cluster, err
	}
	if cluster, err = clusterNamed(tx, "cluster", orDefault(in.Cluster, defaultCluster)); err != nil {
		return site, cluster, err
	}
	switch {
	case cluster.Kind != corral.Condor:
		err = corral.ErrorAt(corral.Unsatisfiable, "cluster", "cluster %s is %s, which has no firewall to negotiate with: its workers connect to corrald", cluster.Name, cluster.Kind)
	case cluster.State != corral.ClusterReady:
		err = corral.ErrorAt(corral.Conflict, "cluster", "cluster %s is %s, not %s", cluster.Name, cluster.State, corral.ClusterReady)
	case site.State != corral.SiteReady:
		err = corral.ErrorAt(corral.Conflict, "site", "site %s is %s, not %s", site.Name, site.State, corral.SiteReady)
	}
	return site, cluster, err
}
