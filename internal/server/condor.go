package server

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

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
		if err == nil {
			err = s.canRun(ctx, madeOf(cluster, in))
		}
		if err != nil {
			return step[corral.Cluster]{}, err
		}
		return only(func(tx *store.Tx) (corral.Cluster, error) { return start(tx, cluster.ID, in) })
	})
}

// madeOf is what a cluster is made of once it is started as asked.
func madeOf(k corral.Cluster, in api.StartCluster) string {
	if in.Newest {
		return ""
	}
	return orDefault(in.HTCondor, k.HTCondor)
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
		return corral.ErrorAt(corral.Conflict, "cluster", "%s is %s", k.Name, k.State)
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
