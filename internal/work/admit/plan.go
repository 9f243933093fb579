package admit

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Plan creates a plan in the state given by its State field.
func Plan(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
	var cluster corral.Cluster
	return admitted(tx, claim{
		owner: p.Owner, quotas: []string{"plans"},
		usable: func() (err error) {
			cluster, err = mayUseCluster(tx, p.Owner, p.Cluster)
			for _, site := range p.Sites {
				if err == nil {
					err = mayUseSite(tx, p.Owner, site)
				}
			}
			return err
		},
		possible: func() error { return cluster.Takes() },
	}, func() (corral.Plan, error) { return tx.CreatePlan(p) })
}

// Provision moves a plan to PROVISIONED. In the same transaction, the caller requests its pilots with Glidein and
// charges them with Reserve.
func Provision(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
	return admitted(tx, claim{owner: p.Owner, possible: func() error {
		if err := Uncontrolled(tx, p.Cluster); err != nil {
			return err
		}
		return alone(tx, p)
	}}, func() (corral.Plan, error) { return tx.MovePlan(p.ID, corral.PlanProvision, "") })
}

// labelOf returns the label of the runs and glideins of a plan.
func labelOf(p corral.Plan) map[string]string {
	return map[string]string{corral.PlanLabel: strconv.FormatInt(int64(p.ID), 10)}
}
