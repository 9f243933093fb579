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

// A cluster has one controller: its scale, an ensemble, or the plan of a run. Two would each count on, and pay for, the
// workers that the other has asked for.

// Uncontrolled refuses a second controller of a cluster beside its scale, or beside an ensemble that is carried out
// there. A Conflict error.
func Uncontrolled(tx *store.Tx, cluster corral.ClusterID) error {
	if err := unscaled(tx, cluster); err != nil {
		return err
	}
	return withoutEnsemble(tx, cluster)
}

// unscaled refuses a second controller beside a cluster's scale.
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

// withoutEnsemble refuses a second controller beside an ensemble.
func withoutEnsemble(tx *store.Tx, cluster corral.ClusterID) error {
	open, err := tx.OpenEnsembles()
	for _, e := range open {
		if e.Cluster == cluster {
			return corral.ErrorAt(corral.Conflict, "cluster", "ensemble %d asks for workers of %s until it has ended; "+
				"`corral ensemble cancel %[1]d` ends it", e.ID, e.ClusterName)
		}
	}
	return err
}

// planOf returns the first plan that asks for workers of a cluster; one with id 0: none does. Whoever is about to ask
// for a controller has released those whose runs are over (provision.ReleaseOver).
func planOf(tx *store.Tx, cluster corral.ClusterID) (corral.PlanID, error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if p.Cluster == cluster {
			return p.ID, err
		}
	}
	return 0, err
}

// alone refuses a plan that is to be revised where another one is, for a run that is under way: tasks of either run go
// to any worker of the cluster, so that each plan would count on, and pay for, what the other one uses. A Conflict
// error.
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
				return corral.ErrorAt(corral.Conflict, "cluster", "plan %d is revised for a run that is under way on %s: "+
					"wait for its end, or give this run a cluster of its own (corral cluster create)", q.ID, p.ClusterName)
			}
		}
	}
	return err
}
