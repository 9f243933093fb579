package admit

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// Run creates a run that a user requests. Its directory has already been laid out.
func Run(tx *store.Tx, r corral.Run) (corral.Run, error) {
	c := ofRun(tx, r, func() error { return mayHavePlan(tx, r) })
	c.quotas = []string{"runs-open", "runs"}
	return admitted(tx, c, func() (corral.Run, error) { return tx.CreateRun(r) })
}

// RunOfEnsemble creates the run of an ensemble's workflow. It was admitted with the ensemble, so no quota is checked.
func RunOfEnsemble(tx *store.Tx, r corral.Run) (corral.Run, error) {
	c := ofRun(tx, r, func() error { return request.CheckLabels(r.Labels, record.Label) })
	return admitted(tx, c, func() (corral.Run, error) { return tx.CreateRun(r) })
}

// Resume continues a run that is over. The run counts against the quota of open runs again.
func Resume(tx *store.Tx, r corral.Run) (corral.Run, error) {
	return admitted(tx, ofResumed(tx, r), func() (corral.Run, error) { return tx.MoveRun(r.ID, corral.RunResume, "") })
}

// CheckResume returns the error with which Resume would refuse a run now.
func CheckResume(tx *store.Tx, r corral.Run) error { return ofResumed(tx, r).ask(tx) }

// ofResumed returns the claim of a run that is to continue. Its cluster need not be READY: the run waits for it.
func ofResumed(tx *store.Tx, r corral.Run) claim {
	return claim{
		owner: r.Owner,
		usable: func() error {
			_, err := mayUseCluster(tx, r.Owner, r.Cluster)
			return err
		},
		quotas: []string{"runs-open"},
	}
}

// ofRun returns the claim of a run; the function labels checks its reserved labels.
func ofRun(tx *store.Tx, r corral.Run, labels func() error) claim {
	var cluster corral.Cluster
	return claim{
		owner: r.Owner,
		usable: func() (err error) {
			if err = labels(); err == nil {
				cluster, err = mayUseCluster(tx, r.Owner, r.Cluster)
			}
			if err == nil {
				err = mayBear(tx, r.Owner, r.Labels)
			}
			return err
		},
		possible: func() error { return cluster.Takes() },
		taken:    func() error { return tx.FreeRunDir(r.Dir) },
	}
}

// mayHavePlan refuses reserved labels except the label of a plan. The plan must belong to the owner, be PROVISIONED, be
// for the same cluster, and be the only revised plan there if corrald revises it.
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
		return corral.ErrorAt(corral.Forbidden, "labels", "plan %d belongs to %s", p.ID, p.Owner)
	case p.Cluster != r.Cluster:
		return corral.ErrorAt(corral.Invalid, "labels", "plan %d is for cluster %s", p.ID, p.ClusterName)
	case p.State != corral.PlanProvisioned:
		return corral.ErrorAt(corral.Conflict, "labels", "plan %d is %s: its pilots are not requested", p.ID, p.State)
	}
	return alone(tx, p)
}
