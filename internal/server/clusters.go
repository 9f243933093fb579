package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) listClusters(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit")
	f := q.filter()
	if q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Cluster], error) {
		clusters, err := tx.Clusters(store.Filter{All: f.All, Page: oneMore(f.Page)})
		return listOf(clusters, f.Limit, func(c corral.Cluster) int64 { return int64(c.ID) }), err
	})
}

func (s *Server) createCluster(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewCluster) (step[corral.Cluster], error) {
		k, err := s.newCluster(ctx, in, actor(c))
		if err != nil {
			return step[corral.Cluster]{}, err
		}
		return only(func(tx *store.Tx) (corral.Cluster, error) {
			created, err := tx.CreateCluster(k)
			if err != nil || !created.Attached {
				return created, placed(corral.Conflict, "name", err)
			}
			// Under the id that it has from here on, and before the commit: whoever sees the row finds the token.
			return created, s.cfg.Pools.PutToken(created.ID, in.Token)
		})
	})
}

// clusterNamed finds a cluster by name or id.
func clusterNamed(tx *store.Tx, place, ref string) (corral.Cluster, error) {
	if !digits.MatchString(ref) {
		cluster, err := tx.ClusterNamed(ref)
		return cluster, missing(place, err)
	}
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		return corral.Cluster{}, corral.ErrorAt(corral.NotFound, place, "%s is not an id", ref)
	}
	cluster, err := tx.Cluster(corral.ClusterID(id))
	return cluster, missing(place, err)
}

// clusterID finds the id of the cluster that a parameter names.
func clusterID(tx *store.Tx) func(ref string) (corral.ClusterID, error) {
	return func(ref string) (corral.ClusterID, error) {
		cluster, err := clusterNamed(tx, "cluster", ref)
		return cluster.ID, err
	}
}

// theCluster finds the cluster that the path names.
func theCluster(c echo.Context, tx *store.Tx) (corral.Cluster, error) {
	return clusterNamed(tx, "cluster", pathParam(c, "cluster"))
}

func (s *Server) getCluster(c echo.Context) error {
	return answerOrWait(s, c, target[corral.Cluster]{
		load: func(tx *store.Tx) (corral.Cluster, error) { return theCluster(c, tx) },
		about: func(k corral.Cluster) store.Subject {
			return store.Subject{Object: corral.ObjectCluster, ID: int64(k.ID)}
		},
		until: func(list string) (func(corral.Cluster) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.ClusterStates)
			return u.Cluster, err
		},
	})
}

func (s *Server) clusterWorkers(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Worker], error) {
		cluster, err := theCluster(c, tx)
		if err != nil {
			return api.List[corral.Worker]{}, err
		}
		return whole(s.workers.Workers(cluster.ID), ""), nil
	})
}

func (s *Server) removeCluster(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Cluster], error) {
		return only(func(tx *store.Tx) (corral.Cluster, error) {
			cluster, err := theCluster(c, tx)
			if err != nil || cluster.State == corral.ClusterDeleted || cluster.State == corral.ClusterRemoving {
				return cluster, err
			}
			if err := unused(tx, cluster); err != nil {
				return cluster, err
			}
			return tx.RemoveCluster(cluster.ID, "removal was asked for")
		})
	})
}

// unused is a Conflict that names what still needs the cluster.
func unused(tx *store.Tx, cluster corral.Cluster) error {
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: cluster.ID, Live: true})
	if err != nil {
		return err
	}
	runs, err := tx.Runs(store.RunFilter{Cluster: cluster.ID, States: unfinished})
	if err != nil {
		return err
	}
	var users []string
	for _, g := range glideins {
		users = append(users, fmt.Sprintf("glidein %d", g.ID))
	}
	for _, r := range runs {
		users = append(users, fmt.Sprintf("run %d", r.ID))
	}
	if len(users) == 0 {
		return nil
	}
	return corral.Errorf(corral.Conflict, "cluster %s is needed by %s: remove glideins (`corral glidein remove`) and cancel runs (`corral runs cancel`) first", cluster.Name, strings.Join(users, ", "))
}

// unfinished are the states of runs that need their cluster.
var unfinished = []corral.RunState{corral.RunRunning, corral.RunCancelling}
