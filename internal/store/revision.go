package store

import (
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

var revisions = table[corral.Revision]{
	noun: "revision",
	name: "plan_revisions",
	columns: func(r *corral.Revision) []column {
		return []column{
			{"id", orNull(&r.ID)},
			{"plan_id", &r.Plan},
			{"number", &r.Number},
			{"at_ms", at(&r.At)},
			{"document", asJSON(&r.RevisionText)},
		}
	},
	about: func(r corral.Revision) []Subject {
		return []Subject{{corral.ObjectPlan, int64(r.Plan)}}
	},
}

// RevisePlan stores the next revision of a plan and adds an entry to the plan's history. The changes that the
// revision describes belong in the same transaction. It returns a Conflict error if the plan is not PROVISIONED.
func (t *Tx) RevisePlan(id corral.PlanID, text corral.RevisionText) (corral.Revision, error) {
	p, err := t.PlanRow(id)
	if err != nil {
		return corral.Revision{}, err
	}
	line, err := p.Revise(strings.Join(text.Why(), "; "))
	if err != nil {
		return corral.Revision{}, err
	}
	latest, err := t.LatestRevision(id)
	if err != nil {
		return corral.Revision{}, err
	}
	r := corral.Revision{Plan: id, Number: latest + 1, At: t.now, RevisionText: text}
	if r.ID, err = revisions.insert(t, r); err != nil {
		return corral.Revision{}, err
	}
	t.touch(revisions.about(r))
	return r, t.record(line)
}

// Revisions lists the revisions of a plan, oldest first. A page's After is a revision number.
func (t *Tx) Revisions(id corral.PlanID, p Page) ([]corral.Revision, error) {
	c := conditions{order: "number", limit: p.Limit}
	c.add("plan_id = ?", id)
	c.add("number > ?", p.After)
	return revisions.list(t, c)
}

// LatestRevision returns the number of a plan's latest revision, or 0 if it has none.
func (t *Tx) LatestRevision(id corral.PlanID) (number int, err error) {
	const query = "select coalesce(max(number), 0) from plan_revisions where plan_id = ?"
	err = t.row(query, []any{id}, &number)
	return number, wrap.Errorf(err, "counting the revisions of plan %d", id)
}

// NoteNews adds an entry to a run's history with news about its expected end.
func (t *Tx) NoteNews(id corral.RunID, event, reason string) error {
	r, err := t.Run(id)
	if err != nil {
		return err
	}
	return t.record(corral.Entry{Object: corral.ObjectRun, Of: int64(id), Event: event, From: string(r.State),
		To: string(r.State), Reason: reason})
}
