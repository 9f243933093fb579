package provision

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// ReleaseOver releases those of the plans that wanted picks whose runs are over, so that none of them comes to life
// again after what the caller is about to do. It ends at the first plan that still asks for workers, which it returns:
// its run goes on, or it has none yet, as between the two requests of corral run --auto. 0 if there is none.
func ReleaseOver(tx *store.Tx, wanted func(corral.Plan) bool) (corral.PlanID, error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if err != nil || !wanted(p) {
			continue
		}
		var reason string
		if reason, err = outlived(tx, p); err == nil && reason == "" {
			return p.ID, nil
		}
		if err == nil {
			_, err = Release(tx, p, reason)
		}
	}
	return 0, err
}
