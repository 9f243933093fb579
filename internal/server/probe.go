package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) probeSite(c echo.Context) error {
	return change(s, c, http.StatusOK, func(ctx context.Context, in api.NewProbe) (step[api.Probe], error) {
		var site corral.Site
		var cluster corral.Cluster
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			site, cluster, err = probed(c, tx, in)
			return err
		})
		if err != nil {
			return step[api.Probe]{}, err
		}
		p, err := s.probe(ctx, site, cluster)
		if err != nil {
			return step[api.Probe]{}, entry(err)
		}
		return only(func(tx *store.Tx) (api.Probe, error) {
			for _, said := range inWords(p) {
				if err := tx.Log(corral.ObjectSite, int64(site.ID), "probe", said); err != nil {
					return p, err
				}
			}
			now, err := tx.Site(site.ID)
			p.Platform = now.Platform
			return p, err
		})
	})
}

// probe finds out what the site is like, and how the cluster's pool would reach workers there unless it is none.
func (s *Server) probe(ctx context.Context, site corral.Site, cluster corral.Cluster) (p api.Probe, err error) {
	p.Site = site.Name
	if p.Facts, err = s.cfg.Survey(ctx, site); err != nil || cluster.ID == 0 {
		return p, err
	}
	network, err := s.cfg.ProbeNetwork(ctx, site, cluster)
	p.Network = &network
	return p, err
}

// inWords is a probe as histories have it.
func inWords(p api.Probe) []string {
	said := p.Facts.Batch
	var queues []string
	for _, q := range p.Facts.Queues {
		queues = append(queues, q.Name)
	}
	if len(queues) > 0 {
		said += ", queues: " + strings.Join(queues, ", ")
	}
	if p.Network == nil {
		return []string{said}
	}
	return []string{said, p.Network.String()}
}

// probed finds the site and, if the network is to be measured, the cluster of a probe.
func probed(c echo.Context, tx *store.Tx, in api.NewProbe) (site corral.Site, cluster corral.Cluster, err error) {
	if site, err = theSite(c, tx); err != nil {
		return site, cluster, err
	}
	if !in.Network {
		switch {
		case in.Cluster != "":
			err = corral.ErrorAt(corral.Invalid, "cluster", "goes with network")
		case site.State == corral.SiteDeleted:
			err = corral.ErrorAt(corral.Conflict, "site", "site %s is %s", site.Name, site.State)
		}
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
