package server

import (
	"cmp"
	"context"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/packages"
)

// workerPackage is the name of packages with HTCondor's workers.
const workerPackage = "htcondor"

// start starts or restarts a cluster's pool, with another HTCondor if one is named, which also upgrades a pool. As in
// create, conditions that would prevent the start are checked before the answer.
func (h *clusterHandlers) start(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, in api.StartCluster) (rest.Step[corral.Cluster], error) {
		err := cmp.Or(request.CheckStart(in), access.CheckRelease(c.Caller(), "htcondor", in.HTCondor))
		if err != nil {
			return rest.Step[corral.Cluster]{}, err
		}
		cluster, err := h.Load(ctx, c)
		if err == nil {
			err = hasDaemons(cluster)
		}
		var version string
		if err == nil {
			version, err = h.canRun(ctx, madeOf(cluster, in))
		}
		if err != nil {
			return rest.Step[corral.Cluster]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Cluster, error) {
			k, err := tx.Cluster(cluster.ID)
			if err == nil {
				err = notOlder(tx, k, version)
			}
			if err != nil {
				return k, err
			}
			return start(tx, k, in)
		})
	})
}

// madeOf returns the HTCondor of a cluster after the requested start, or "" for the newest one available at each start.
func madeOf(k corral.Cluster, in api.StartCluster) string {
	if in.Newest {
		return ""
	}
	return cmp.Or(in.HTCondor, k.HTCondor)
}

// notOlder returns a Conflict error if a pool of that version may have newer workers, because HTCondor assigns no jobs
// to workers newer than their pool. A glidein's workers use the newest package that was not newer than the pool when
// they started.
func notOlder(tx *store.Tx, k corral.Cluster, version string) error {
	if k.Attached || k.Version == "" || packages.CompareVersions(version, k.Version) >= 0 {
		return nil
	}
	users, err := liveGlideins(tx, k.ID)
	if err != nil || len(users) == 0 {
		return err
	}
	all, err := tx.Packages(store.Filter{All: true}) // workers may use a package that was removed
	if err != nil {
		return err
	}
	var newer []string
	for _, p := range all {
		if p.What == workerPackage && packages.CompareVersions(p.Version, version) > 0 &&
			packages.CompareVersions(p.Version, k.Version) <= 0 {
			newer = append(newer, p.Version)
		}
	}
	if len(newer) == 0 {
		return nil
	}
	return corral.ErrorAt(corral.Conflict, "htcondor",
		"a pool of %s gives no jobs to newer workers, and those of %s may have version %s: remove them first",
		version, strings.Join(users, ", "), strings.Join(newer, ", "))
}

// start requests a cluster's start. A cluster that is already starting with the same HTCondor is left alone.
func start(tx *store.Tx, k corral.Cluster, in api.StartCluster) (corral.Cluster, error) {
	of := madeOf(k, in)
	if k.State == corral.ClusterStarting && of == k.HTCondor {
		return k, nil
	}
	reason := "a start was requested"
	if of != k.HTCondor {
		reason += ", with " + cmp.Or(of, "the newest HTCondor")
	}
	// The move comes first because it may be refused: a pool that is stopping or being removed keeps its HTCondor.
	if _, err := tx.MoveCluster(k.ID, corral.ClusterStart, reason); err != nil {
		return k, err
	}
	return tx.SetCluster(k.ID, func(k *corral.Cluster) { k.HTCondor = of })
}

// stop requests the end of a pool's daemons. Its queue is kept. A pool that is stopping or stopped is returned
// unchanged.
func (h *clusterHandlers) stop(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, k corral.Cluster) (corral.Cluster, error) {
		err := hasDaemons(k)
		if err != nil || k.State == corral.ClusterStopping || k.State == corral.ClusterStopped {
			return k, err
		}
		if k.Attached {
			return k, corral.ErrorAt(corral.Unsatisfiable, "cluster",
				"another party runs the pool of %s: it cannot be stopped from here", k.Name)
		}
		return tx.MoveCluster(k.ID, corral.ClusterStop, "a stop was requested")
	})
}

// hasDaemons refuses a request that requires daemons for a cluster without any.
func hasDaemons(k corral.Cluster) error {
	if k.Kind == corral.Condor {
		return nil
	}
	return corral.ErrorAt(corral.Unsatisfiable, "cluster",
		"%s of kind %s has no daemons to start or stop", k.Name, k.Kind)
}
