package admit

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// Run creates a run that a person asks for, whose directory is laid out.
func Run(tx *store.Tx, r corral.Run) (corral.Run, error) {
	c := ofRun(tx, r, func() error { return mayHavePlan(tx, r) })
	c.quotas = []string{"runs-open", "runs"}
	return admitted(tx, c, func() (corral.Run, error) { return tx.CreateRun(r) })
}

// RunOfEnsemble creates the run of a workflow of an ensemble. It counts for no quota: the ensemble was admitted with
// its workflows.
func RunOfEnsemble(tx *store.Tx, r corral.Run) (corral.Run, error) {
	c := ofRun(tx, r, func() error { return request.CheckLabels(r.Labels, record.Label) })
	return admitted(tx, c, func() (corral.Run, error) { return tx.CreateRun(r) })
}

// ofRun is the claim of a run; labels refuses labels that are not for who asks.
func ofRun(tx *store.Tx, r corral.Run, labels func() error) claim {
	var cluster corral.Cluster
	return claim{
		owner: r.Owner,
		uses: func() (err error) {
			if err = labels(); err == nil {
				cluster, err = mayUseCluster(tx, r.Owner, r.Cluster)
			}
			if err == nil {
				err = mayBear(tx, r.Owner, r.Labels)
			}
			return err
		},
		gives: func() error { return cluster.Takes() },
		taken: func() error { return tx.FreeRunDir(r.Dir) },
	}
}

// mayHavePlan refuses a run with a label that says that corrald itself asked for it, and one whose label names a plan
// that is not its owner's, is for another cluster, is not PROVISIONED or, if it is to be revised, is not alone. A run
// without the label is not refused.
func mayHavePlan(tx *store.Tx, r corral.Run) error {
	if err := request.CheckLabels(r.Labels, corral.PlanLabel); err != nil {
		return err
	}
	name, ok := r.Labels[corral.PlanLabel]
	if !ok {
		return nil
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "labels", "%.80q is not the id of a plan", name)
	}
	p, err := tx.PlanRow(corral.PlanID(id))
	switch {
	case err != nil:
		return corral.ErrorAt(corral.KindOf(err), "labels", "%w", err)
	case p.Owner != r.Owner:
		return corral.ErrorAt(corral.Forbidden, "labels", "plan %d is %s's", p.ID, p.Owner)
	case p.Cluster != r.Cluster:
		return corral.ErrorAt(corral.Invalid, "labels", "plan %d is for cluster %s", p.ID, p.ClusterName)
	case p.State != corral.PlanProvisioned:
		return corral.ErrorAt(corral.Conflict, "labels", "plan %d is %s: its pilots are not asked for", p.ID, p.State)
	}
	return alone(tx, p)
}
