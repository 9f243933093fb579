package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// Ensemble creates an ensemble on a cluster without another controller. Its workflows have already been stored.
func Ensemble(tx *store.Tx, e record.Ensemble) (record.Ensemble, error) {
	var cluster corral.Cluster
	return admitted(tx, claim{
		owner: e.Owner, quotas: []string{"ensembles"},
		usable: func() (err error) {
			if err = mayUseSite(tx, e.Owner, e.Pilots.SiteID); err == nil {
				cluster, err = mayUseCluster(tx, e.Owner, e.Cluster)
			}
			return err
		},
		possible: func() error { return carries(tx, cluster) },
	}, func() (record.Ensemble, error) { return tx.CreateEnsemble(e) })
}

// carries returns a Conflict error if a cluster cannot run an ensemble now.
func carries(tx *store.Tx, cluster corral.Cluster) error {
	if err := unscaled(tx, cluster.ID); err != nil {
		return err
	}
	planned, err := planOf(tx, cluster.ID)
	if err != nil {
		return err
	}
	if planned != 0 {
		return corral.ErrorAt(corral.Conflict, "cluster", "plan %d requests workers there until its run is over; "+
			"`corral plan release %[1]d` ends that", planned)
	}
	if err := cluster.Takes(); err != nil {
		return err
	}
	open, err := tx.OpenEnsembles()
	for _, e := range open {
		if e.Cluster == cluster.ID {
			return corral.ErrorAt(corral.Conflict, "cluster", "%s is running ensemble %d: wait until it ends, or use "+
				"another cluster", cluster.Name, e.ID)
		}
	}
	return err
}
