package store

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

var ensembles = table[record.Ensemble]{
	noun:  corral.ObjectEnsemble,
	name:  "ensembles",
	owner: "owner",
	columns: func(e *record.Ensemble) []column {
		return []column{
			{"id", orNull(&e.ID)},
			{"name", &e.Name},
			{"owner", &e.Owner},
			{"cluster_id", &e.Cluster},
			{"goal", asJSON(&e.Goal)},
			{"pilots", asJSON(&e.Pilots)},
			{"choice", asJSON(&e.Choice)},
			{"members", asJSON(&e.Members)},
			{"files", &e.Files},
			{"steps", &e.Steps},
			{"spent", &e.Spent},
			{"state", &e.State},
			{"reason", &e.Reason},
			{"created_at_ms", at(&e.CreatedAt)},
			{"ended_at_ms", at(&e.EndedAt)},
			{"updated_at_ms", at(&e.UpdatedAt)},
			{"(select name from clusters where clusters.id = cluster_id)", &e.ClusterName},
		}
	},
	about: func(e record.Ensemble) []Subject {
		return []Subject{{corral.ObjectEnsemble, int64(e.ID)}}
	},
}

// CreateEnsemble stores e as RUNNING and sets its ID, State and times. Its cluster must not be carrying out another
// ensemble.
func (t *Tx) CreateEnsemble(e record.Ensemble) (record.Ensemble, error) {
	e.ID, e.State, e.CreatedAt, e.UpdatedAt = 0, record.Running, t.now, t.now
	return ensembles.create(t, e, string(e.State))
}

// Ensemble returns the ensemble with this id, DELETED or not.
func (t *Tx) Ensemble(id record.ID) (record.Ensemble, error) {
	return ensembles.one(t, id, "id = ?", id)
}

// Ensembles lists ensembles.
func (t *Tx) Ensembles(f Filter) ([]record.Ensemble, error) { return ensembles.filtered(t, f) }

// OpenEnsembles lists the RUNNING and ENDING ensembles.
func (t *Tx) OpenEnsembles() ([]record.Ensemble, error) {
	return ensembles.list(t, where("state in ('RUNNING', 'ENDING')"))
}

// MoveEnsemble applies move to an ensemble.
func (t *Tx) MoveEnsemble(id record.ID, move record.Move, reason string) (record.Ensemble, error) {
	return ensembles.move(t, id, func(e record.Ensemble) (record.Ensemble, []corral.Entry, error) {
		return e.Apply(move, reason, t.now)
	})
}

// SetEnsemble records an ensemble's progress.
func (t *Tx) SetEnsemble(id record.ID, p record.Progress) (record.Ensemble, error) {
	set := func(e *record.Ensemble) { e.Progress = p }
	return ensembles.setFacts(t, id, set, func(e record.Ensemble) record.Ensemble {
		e.Progress = record.Progress{}
		return e
	}, func(e *record.Ensemble) { e.UpdatedAt = t.after(e.UpdatedAt) })
}
