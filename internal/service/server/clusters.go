package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// clusterHandlers answer requests about clusters.
//
// An embedded cluster consists only of its row: corrald itself dispatches its tasks. A condor cluster is a pool of
// HTCondor's daemons, which package condorpool maintains according to the row, or a remote pool to which corrald is
// attached. The handlers only move rows; the row's state shows whether a pool has followed.
type clusterHandlers struct {
	rest.Resource[corral.Cluster]
	cfg Config
}

func newClusters(a *rest.Adapter, cfg Config) *clusterHandlers {
	return &clusterHandlers{cfg: cfg, Resource: rest.Resource[corral.Cluster]{
		Adapter: a,
		Object:  corral.ObjectCluster,
		ID:      func(k corral.Cluster) int64 { return int64(k.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Cluster, error) {
			return clusterNamed(tx, c.Param("cluster"))
		},
		Progress: func(list string) (func(corral.Cluster) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.ClusterStates)
			return u.Cluster, err
		},
	}}
}

func (h *clusterHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/clusters", h.Pages((*store.Tx).Clusters), listing...),
		rest.Post("/v1/clusters", h.create),
		rest.Get("/v1/clusters/:cluster", h.Get, waiting...),
		rest.Delete("/v1/clusters/:cluster", h.remove),
		rest.Post("/v1/clusters/:cluster/start", h.start),
		rest.Post("/v1/clusters/:cluster/stop", h.stop),
		rest.Get("/v1/clusters/:cluster/env", h.env),
		rest.Get("/v1/clusters/:cluster/history", h.History, paging...),
		rest.Get("/v1/clusters/:cluster/workers", h.registered),
	}
}

// create creates a cluster. A pool starts after the answer, so conditions that would permanently prevent its start
// are checked before the answer, while a person still waits for it. The row of an attached pool and its token are one
// change: any reader of the row finds the token.
func (h *clusterHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewCluster) (rest.Step[corral.Cluster], error) {
		k, err := admit.ReadCluster(c.Caller(), in)
		if err == nil && k.Kind == corral.Condor {
			_, err = h.canRun(ctx, k.HTCondor)
		}
		if err == nil && in.Address != "" {
			k.Collector, err = listenable(ctx, k.Collector)
		}
		if err != nil {
			return rest.Step[corral.Cluster]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Cluster, error) {
			created, err := admit.Cluster(tx, k)
			if err != nil || !created.Attached {
				return created, rest.Placed(corral.Conflict, "name", err)
			}
			return created, h.cfg.Pools.PutToken(created.ID, in.Token)
		})
	})
}

// canRun returns the version of the HTCondor that htcondor refers to in the catalog, or the reason why this corrald
// cannot run a pool with it.
func (h *clusterHandlers) canRun(ctx context.Context, htcondor string) (version string, err error) {
	if h.cfg.CondorRefused != nil {
		return "", h.cfg.CondorRefused
	}
	_, version, err = h.cfg.Catalog.Release(ctx, htcondor)
	return version, err
}

// listenable tries to listen at an address, because only the kernel knows which addresses and ports are available. If
// another process takes the port before the pool starts, the cluster reports that at its start. listenable returns
// address, with port 0 replaced by a free port, if a pool can listen there.
func listenable(ctx context.Context, address string) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		kind := corral.Unsatisfiable
		if errors.Is(err, syscall.EADDRINUSE) { // this may be temporary
			kind = corral.Conflict
		}
		return "", corral.ErrorAt(kind, "address", "no pool can listen there: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// ready returns a Conflict error for a cluster that cannot be used now. The error contains the cluster's advice to
// people (Idle).
func ready(k corral.Cluster) error {
	if k.State != corral.ClusterReady {
		return corral.ErrorAt(corral.Conflict, "cluster", "%s %s", k.Name, k.Idle())
	}
	return nil
}

// registered answers with the present workers of the cluster. They are not stored: a worker exists as long as its
// connection, or as long as the pool's collector lists it.
func (h *clusterHandlers) registered(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.List[corral.Worker], error) {
		cluster, err := h.Find(c, tx)
		if err != nil {
			return api.List[corral.Worker]{}, err
		}
		return rest.Whole(h.cfg.Clusters.Workers(cluster.ID), ""), nil
	})
}

// remove removes an unused cluster: an embedded one at once, a pool with its daemons after the answer. A cluster that
// is already being removed is returned unchanged, so a repetition is harmless.
func (h *clusterHandlers) remove(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, k corral.Cluster) (corral.Cluster, error) {
		if k.State == corral.ClusterDeleted || k.State == corral.ClusterRemoving {
			return k, nil
		}
		if err := unused(tx, k); err != nil {
			return k, err
		}
		return tx.RemoveCluster(k.ID, "removal was requested")
	})
}

// unfinished lists the states of runs that need their cluster. A failed or stalled run can be resumed, which also
// needs its cluster; but that may never happen, so such a run does not keep the cluster.
var unfinished = []corral.RunState{corral.RunRunning, corral.RunCancelling}

// unused returns a Conflict error that lists the glideins and runs that still need the cluster, and the commands that
// end them: glideins would have no pool to join, and runs would have no queue for their tasks.
func unused(tx *store.Tx, cluster corral.Cluster) error {
	users, err := liveGlideins(tx, cluster.ID)
	if err != nil {
		return err
	}
	runs, err := tx.Runs(store.RunFilter{Cluster: cluster.ID, States: unfinished})
	if err != nil {
		return err
	}
	for _, r := range runs {
		users = append(users, fmt.Sprintf("run %d", r.ID))
	}
	if err := admit.Uncontrolled(tx, cluster.ID); err != nil {
		return err
	}
	if len(users) == 0 {
		return nil
	}
	return corral.Errorf(corral.Conflict, "cluster %s is needed by %s: remove glideins (`corral glidein remove`) "+
		"and cancel runs (`corral runs cancel`) first", cluster.Name, strings.Join(users, ", "))
}

// liveGlideins lists the glideins of a cluster that may still have workers.
func liveGlideins(tx *store.Tx, id corral.ClusterID) (names []string, err error) {
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: id, Live: true})
	for _, g := range glideins {
		names = append(names, fmt.Sprintf("glidein %d", g.ID))
	}
	return names, err
}

// env answers with the environment variables that a program needs to use the cluster.
func (h *clusterHandlers) env(c *rest.Call) error {
	ctx := c.Context()
	k, err := h.Load(ctx, c)
	if err == nil {
		err = ready(k)
	}
	assignments := []string{"CORRAL_CLUSTER=" + k.Name}
	if err == nil && k.Kind == corral.Condor {
		assignments, err = h.cfg.Pools.Env(ctx, k.ID)
	}
	if err != nil {
		return err
	}
	return c.JSON(envOf(assignments))
}

// envOf separates assignments NAME=value into variables and folders for PATH: the client puts the folders before
// those of its own PATH, which is unknown to corrald.
func envOf(assignments []string) api.Env {
	env := api.Env{Variables: []api.Variable{}, Path: []string{}}
	for _, a := range assignments {
		name, value, _ := strings.Cut(a, "=")
		if name == "PATH" {
			env.Path = filepath.SplitList(value)
			continue
		}
		env.Variables = append(env.Variables, api.Variable{Name: name, Value: value})
	}
	return env
}
