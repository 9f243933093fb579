package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
)

// workerPackage is what packages of HTCondor's workers are called.
const workerPackage = "htcondor"

// startCluster starts a pool, or starts one that runs again: with another HTCondor if one is named.
func (s *Server) startCluster(c echo.Context) error {
	return change(s, c, http.StatusOK, func(ctx context.Context, in api.StartCluster) (step[corral.Cluster], error) {
		var k checker
		k.htcondor("htcondor", in.HTCondor)
		k.invalid(in.Newest && in.HTCondor != "", "newest", "goes without htcondor")
		if k.err != nil {
			return step[corral.Cluster]{}, k.err
		}
		var cluster corral.Cluster
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			cluster, err = theCluster(c, tx)
			return err
		})
		if err == nil {
			err = hasDaemons(cluster)
		}
		var version string
		if err == nil {
			version, err = s.canRun(ctx, madeOf(cluster, in))
		}
		if err != nil {
			return step[corral.Cluster]{}, err
		}
		return only(func(tx *store.Tx) (corral.Cluster, error) {
			if err := notOlder(tx, cluster.ID, version); err != nil {
				return cluster, err
			}
			return start(tx, cluster.ID, in)
		})
	})
}

// madeOf is what a cluster is made of once it is started as asked.
func madeOf(k corral.Cluster, in api.StartCluster) string {
	if in.Newest {
		return ""
	}
	return orDefault(in.HTCondor, k.HTCondor)
}

// notOlder is a Conflict if a pool of that version may have newer workers, to which it would give no jobs.
func notOlder(tx *store.Tx, id corral.ClusterID, version string) error {
	k, err := tx.Cluster(id)
	if err != nil || k.Attached || k.Version == "" || packages.CompareVersions(version, k.Version) >= 0 {
		return err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: id, Live: true})
	if err != nil || len(glideins) == 0 {
		return err
	}
	all, err := tx.Packages(store.Filter{All: true}) // one that was removed may run
	if err != nil {
		return err
	}
	var newer, users []string
	for _, p := range all {
		if p.What == workerPackage && packages.CompareVersions(p.Version, version) > 0 && packages.CompareVersions(p.Version, k.Version) <= 0 {
			newer = append(newer, p.Version)
		}
	}
	if len(newer) == 0 {
		return nil
	}
	for _, g := range glideins {
		users = append(users, fmt.Sprintf("glidein %d", g.ID))
	}
	return corral.ErrorAt(corral.Conflict, "htcondor", "a pool of %s gives no jobs to newer workers, and those of %s may be of %s: remove them first",
		version, strings.Join(users, ", "), strings.Join(newer, ", "))
}

// start asks that a cluster is started. One that starts already, of the same, is left alone.
func start(tx *store.Tx, id corral.ClusterID, in api.StartCluster) (corral.Cluster, error) {
	k, err := tx.Cluster(id)
	if err != nil {
		return k, err
	}
	of := madeOf(k, in)
	if k.State == corral.ClusterStarting && of == k.HTCondor {
		return k, nil
	}
	reason := "starting was asked for"
	if of != k.HTCondor {
		reason += ", of " + orDefault(of, "the newest HTCondor")
	}
	if _, err := tx.MoveCluster(id, corral.ClusterStart, reason); err != nil {
		return k, err
	}
	return tx.SetCluster(id, func(k *corral.Cluster) { k.HTCondor = of })
}

func (s *Server) stopCluster(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Cluster], error) {
		return only(func(tx *store.Tx) (corral.Cluster, error) {
			k, err := theCluster(c, tx)
			if err == nil {
				err = hasDaemons(k)
			}
			if err != nil || k.State == corral.ClusterStopping || k.State == corral.ClusterStopped {
				return k, err
			}
			if k.Attached {
				return k, corral.ErrorAt(corral.Unsatisfiable, "cluster", "somebody else runs the pool of %s: it cannot be stopped from here", k.Name)
			}
			return tx.MoveCluster(k.ID, corral.ClusterStop, "stopping was asked for")
		})
	})
}

// hasDaemons refuses what makes sense only where there are daemons.
func hasDaemons(k corral.Cluster) error {
	if k.Kind == corral.Condor {
		return nil
	}
	return corral.ErrorAt(corral.Unsatisfiable, "cluster", "%s of kind %s has no daemons to start or stop", k.Name, k.Kind)
}

// clusterEnv answers with what a program needs in its environment to use the cluster.
func (s *Server) clusterEnv(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	var k corral.Cluster
	err := s.db.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		k, err = theCluster(c, tx)
		return err
	})
	if err != nil {
		return err
	}
	if k.State != corral.ClusterReady {
		return corral.ErrorAt(corral.Conflict, "cluster", "%s %s", k.Name, k.Idle())
	}
	assignments := []string{"CORRAL_CLUSTER=" + k.Name}
	if k.Kind == corral.Condor {
		if assignments, err = s.cfg.Pools.Env(c.Request().Context(), k.ID); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, envOf(assignments))
}

// envOf sorts assignments NAME=value into variables and folders.
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
