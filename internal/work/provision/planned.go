package provision

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
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

// planned returns the first of the plans selected by wanted that has a run in progress; the id is 0 if there is none.
func planned(tx *store.Tx, wanted func(corral.Plan) bool) (corral.Plan, error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if err != nil || !wanted(p) {
			continue
		}
		var runs []corral.Run
		runs, err = tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labelled(p)})
		for _, r := range runs {
			if err == nil && !r.State.Over() {
				return p, nil
			}
		}
	}
	return corral.Plan{}, err
}

// CheckNoEnsemble returns a Conflict error if an ensemble is being carried out on the cluster, because the ensemble
// controls the cluster's workers.
func CheckNoEnsemble(tx *store.Tx, cluster corral.ClusterID) error {
	open, err := tx.OpenEnsembles()
	for _, e := range open {
		if e.Cluster == cluster {
			return corral.ErrorAt(corral.Conflict, "cluster", "ensemble %d controls the workers of %s until it has "+
				"ended; `corral ensemble cancel %[1]d` ends it", e.ID, e.ClusterName)
		}
	}
	return err
}

// CheckAlone refuses a plan to be revised if another one is revised on the cluster for a run in progress: tasks of
// either run use any worker of the cluster, so that each plan would count on, and pay for, the workers that the other
// one uses. It returns a Conflict error.
func CheckAlone(tx *store.Tx, p corral.Plan) error {
	if !p.Auto {
		return nil
	}
	other, err := planned(tx, func(q corral.Plan) bool { return q.Auto && q.Cluster == p.Cluster && q.ID != p.ID })
	if err != nil || other.ID == 0 {
		return err
	}
	return corral.ErrorAt(corral.Conflict, "cluster", "plan %d is revised for a run that is under way on %s: wait for "+
		"its end, or give this run a cluster of its own (corral cluster create)", other.ID, p.ClusterName)
}

// CheckRun refuses a run with a label that is reserved for corrald's own requests, and one whose label names a plan
// that is not its owner's, is for another cluster, is not PROVISIONED or, if it is to be revised, is not alone. A run
// without the label is not refused.
func CheckRun(tx *store.Tx, labels map[string]string, cluster corral.ClusterID, owner string) error {
	if err := request.CheckLabels(labels, corral.PlanLabel); err != nil {
		return err
	}
	name, ok := labels[corral.PlanLabel]
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
	case p.Owner != owner:
		return corral.ErrorAt(corral.Forbidden, "labels", "plan %d is %s's", p.ID, p.Owner)
	case p.Cluster != cluster:
		return corral.ErrorAt(corral.Invalid, "labels", "plan %d is for cluster %s", p.ID, p.ClusterName)
	case p.State != corral.PlanProvisioned:
		return corral.ErrorAt(corral.Conflict, "labels", "plan %d is %s: its pilots are not requested", p.ID, p.State)
	}
	return CheckAlone(tx, p)
}
