package provision

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Planned returns the plan that provisions a cluster for a run that is under way, 0 if there is none.
func Planned(tx *store.Tx, cluster corral.ClusterID) (corral.PlanID, error) {
	plans, err := tx.PlanRows(corral.PlanProvisioned)
	for _, p := range plans {
		if err != nil || p.Cluster != cluster {
			continue
		}
		var runs []corral.Run
		runs, err = tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labelled(p)})
		for _, r := range runs {
			if err == nil && !r.State.Over() {
				return p.ID, nil
			}
		}
	}
	return 0, err
}
