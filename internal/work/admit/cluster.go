package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Cluster creates a cluster.
func Cluster(tx *store.Tx, k corral.Cluster) (corral.Cluster, error) {
	return admitted(tx, claim{
		owner: k.Owner, quotas: []string{"clusters"},
		taken: func() error { return tx.FreeClusterName(k.Owner, k.Name) },
	}, func() (corral.Cluster, error) { return tx.CreateCluster(k) })
}

// A cluster has at most one controller that requests workers for it: its scale, an ensemble, or the plan of a run. Two
// controllers would each count on workers that the other had requested.

// Uncontrolled returns a Conflict error if a cluster has a scale or runs an ensemble.
func Uncontrolled(tx *store.Tx, cluster corral.ClusterID) error {
	if err := unscaled(tx, cluster); err != nil {
		return err
	}
	return withoutEnsemble(tx, cluster)
}

// unscaled returns a Conflict error if a cluster has a scale.
func unscaled(tx *store.Tx, cluster corral.ClusterID) error {
	s, err := tx.Scale(cluster)
	switch {
	case corral.KindOf(err) == corral.NotFound:
		return nil
	case err != nil:
		return err
	}
	return corral.ErrorAt(corral.Conflict, "cluster", "%s is scaled: `corral cluster scale %[1]s --off` ends that",
		s.ClusterName)
}

// withoutEnsemble returns a Conflict error if a cluster runs an ensemble.
func withoutEnsemble(tx *store.Tx, cluster corral.ClusterID) error {
	open, err := tx.OpenEnsembles()
	for _, e := range open {
		if e.Cluster == cluster {
			return corral.ErrorAt(corral.Conflict, "cluster", "ensemble %d controls the workers of %s until it has "+
				"ended; `corral ensemble cancel %[1]d` ends it", e.ID, e.ClusterName)
		}
	}
	return err
}

// planOf returns the first plan that requests workers for a cluster, or 0. The caller must have released the plans
// whose runs are over (provision.ReleaseOver).
func planOf(tx *store.Tx, cluster corral.ClusterID) (corral.PlanID, error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if p.Cluster == cluster {
			return p.ID, err
		}
	}
	return 0, err
}

// alone returns a Conflict error if a plan is revised during its run and the cluster has another such plan. The tasks
// of both runs use any worker of the cluster, so each plan would count on, and pay for, the other's workers.
func alone(tx *store.Tx, p corral.Plan) error {
	if !p.Auto {
		return nil
	}
	plans, err := tx.Provisioned()
	for _, q := range plans {
		if err != nil || !q.Auto || q.Cluster != p.Cluster || q.ID == p.ID {
			continue
		}
		var runs []corral.Run
		runs, err = tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labelOf(q)})
		for _, r := range runs {
			if err == nil && !r.State.Over() {
				return corral.ErrorAt(corral.Conflict, "cluster",
					"plan %d is revised for a run that is under way on %s: wait until that run ends, or give this "+
						"run its own cluster (corral cluster create)", q.ID, p.ClusterName)
			}
		}
	}
	return err
}
