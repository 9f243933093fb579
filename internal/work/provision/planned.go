package provision

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// ReleaseOver releases those of the plans selected by wanted whose runs are over, so that the caller's next action
// cannot revive any of them. It ends at the first plan that still requests workers, and returns it: its run
// continues, or does not exist yet, as between the two requests of corral run --auto. It returns 0 if there is none.
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
