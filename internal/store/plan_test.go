package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

func (w *world) newPlan() corral.Plan {
	return corral.Plan{Owner: actor, Cluster: w.cluster.ID, Workflow: "lambda", Digest: digest, State: corral.PlanReady,
		Document: json.RawMessage(`{"feasible":true}`)}
}

func (w *world) createPlan(p corral.Plan) corral.Plan {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) { p, err = tx.CreatePlan(p); return err })
	return p
}

func TestPlanKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.newPlan()
	in.State, in.Reason = corral.PlanInfeasible, "no plan ends within 1m"
	p := w.createPlan(in)
	if p.ID != 1 || p.ClusterName != "default" || p.CreatedAt.IsZero() || !p.BeganAt.IsZero() || p.State != in.State ||
		p.Reason != in.Reason || p.Digest != digest || string(p.Document) != `{"feasible":true}` {
		t.Errorf("plan %+v", p)
	}
	w.view(func(tx *store.Tx) error {
		got, err := tx.Plan(p.ID)
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Errorf("Plan: %v %s", err, diff)
		}
		return nil
	})
}

// TestBudgeted: a document that cannot be read has no budget.
func TestBudgeted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for document, want := range map[string]bool{`{"goal":{"budget":"1ch"}}`: true, `{"goal":{}}`: false, `{`: false} {
		p := w.createPlan(w.newPlan())
		damage := fmt.Sprintf("pragma ignore_check_constraints = on; update plans set document = '%s' where id = %d", document, p.ID)
		if _, err := raw(t, w.path).Exec(damage); err != nil {
			t.Fatal(err)
		}
		w.view(func(tx *store.Tx) error {
			if got, err := tx.Budgeted(p.ID); err != nil || got != want {
				t.Errorf("%s: %t, %v; want %t", document, got, err, want)
			}
			return nil
		})
	}
}

// TestLearnsNothing: only a plan whose document records the request was made without earlier runs.
func TestLearnsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check := func(what string, id corral.PlanID, want bool) {
		t.Helper()
		w.view(func(tx *store.Tx) error {
			if got, err := tx.LearnsNothing(id); err != nil || got != want {
				t.Errorf("%s: %t, %v; want %t", what, got, err, want)
			}
			return nil
		})
	}
	last := corral.PlanID(0)
	for document, want := range map[string]bool{`{"asked":{"no_learn":true}}`: true, `{"asked":{"no_learn":false}}`: false,
		`{"asked":{}}`: false, `{}`: false, `{`: false} {
		p := w.createPlan(w.newPlan())
		damage := fmt.Sprintf("pragma ignore_check_constraints = on; update plans set document = '%s' where id = %d", document, p.ID)
		if _, err := raw(t, w.path).Exec(damage); err != nil {
			t.Fatal(err)
		}
		check(document, p.ID, want)
		last = max(last, p.ID)
	}
	check("a plan that does not exist", last+1, false)
}

// TestPlanMoves: a plan begins when it is provisioned, and can be removed only if it holds no pilots.
func TestPlanMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPlan(w.newPlan())
	infeasible := w.newPlan()
	infeasible.State = corral.PlanInfeasible
	infeasible = w.createPlan(infeasible)
	move := func(id corral.PlanID, move corral.PlanMove) func(*store.Tx) error {
		return func(tx *store.Tx) (err error) { p, err = tx.MovePlan(id, move, "as asked"); return err }
	}
	w.refused(corral.Conflict, move(infeasible.ID, corral.PlanProvision))
	w.refused(corral.NotFound, move(99, corral.PlanProvision))
	if w.write(move(1, corral.PlanProvision)); p.BeganAt.IsZero() || !p.BeganAt.Equal(p.UpdatedAt) {
		t.Errorf("provisioned plan %+v", p)
	}
	began := p.BeganAt
	w.refused(corral.Conflict, move(1, corral.PlanProvision))
	w.refused(corral.Conflict, move(1, corral.PlanRemove))
	w.write(move(1, corral.PlanRelease))
	if w.write(move(1, corral.PlanRemove)); p.State != corral.PlanDeleted || !p.BeganAt.Equal(began) {
		t.Errorf("removed plan %+v, want it to have begun at %v", p, began)
	}
	want := "create >READY, provision READY>PROVISIONED, release PROVISIONED>RELEASED, remove RELEASED>DELETED"
	if got := w.story(corral.ObjectPlan, 1); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
	w.view(func(tx *store.Tx) error {
		some, err1 := tx.Plans(store.Filter{})
		all, err2 := tx.Plans(store.Filter{All: true})
		page, err3 := tx.Plans(store.Filter{All: true, Page: store.Page{After: 1, Limit: 1}})
		if len(some) != 1 || some[0].ID != infeasible.ID || len(all) != 2 || len(page) != 1 || page[0].ID != infeasible.ID {
			t.Errorf("%d plans, %d with those that are DELETED, page %+v: %v %v %v", len(some), len(all), page, err1, err2, err3)
		}
		return nil
	})
}

// A plan outlives its cluster.
func TestPlanOutlivesItsCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPlan(w.newPlan())
	w.write(func(tx *store.Tx) error { _, err := tx.RemoveCluster(w.cluster.ID, ""); return err })
	w.view(func(tx *store.Tx) error {
		if p, err := tx.Plan(1); err != nil || p.ClusterName != "default" || p.State != corral.PlanReady {
			t.Errorf("plan %+v, %v", p, err)
		}
		return nil
	})
}

// revised returns a revision that released one pilot and requested another.
func revised() corral.RevisionText {
	return corral.RevisionText{Reasons: []string{"behind", "one is idle"}, News: "late", End: 90e9, Complete: true,
		Cost:    "0.5ch",
		Added:   []corral.PilotChange{{Pilot: 1, Glidein: 2, Site: "local", Hosts: 1, CPUs: 2}},
		Dropped: []corral.PilotChange{{Pilot: 0, Glidein: 1, Site: "local", Hosts: 1, CPUs: 1, Ask: corral.AskDrain}}}
}

// TestRevisions: a plan's revisions are numbered and leave history entries; only plans that hold pilots can be
// revised.
func TestRevisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.newPlan()
	in.Auto = true
	p := w.createPlan(in)
	if !p.Auto {
		t.Errorf("plan %+v, want it to be revised", p)
	}
	revise := func(tx *store.Tx) error { _, err := tx.RevisePlan(p.ID, revised()); return err }
	w.refused(corral.Conflict, revise)
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(p.ID, corral.PlanProvision, ""); return err })
	w.write(revise)
	w.write(revise)
	w.view(func(tx *store.Tx) error {
		all, err := tx.Revisions(p.ID, store.Page{})
		if err != nil || len(all) != 2 || all[1].Number != 2 || all[1].At.IsZero() {
			t.Errorf("revisions %+v, %v", all, err)
		} else if diff := cmp.Diff(revised(), all[0].RevisionText); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	want := "create >READY, provision READY>PROVISIONED, revise PROVISIONED>PROVISIONED, " +
		"revise PROVISIONED>PROVISIONED"
	if got := w.story(corral.ObjectPlan, int64(p.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

// TestPlansInBrief: lists of plans contain summaries in place of documents, and frequently read rows contain neither.
func TestPlansInBrief(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.newPlan()
	document := plan.Plan{Feasible: true, Pilots: []plan.Pilot{{Site: "local"}, {Site: "local"}}, Waste: 0.25,
		Point: plan.Point{Makespan: 1500e6, CoreHours: 1e-7, PeakCPUs: 3, Cost: cost.Amount{Money: 5, Unit: "EUR"}}}
	var err error
	if in.Document, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	first := w.createPlan(in)
	held := w.createPlan(in)
	w.write(func(tx *store.Tx) (err error) { held, err = tx.MovePlan(held.ID, corral.PlanProvision, ""); return err })
	w.view(func(tx *store.Tx) error {
		all, err := tx.Plans(store.Filter{})
		if err != nil || len(all) != 2 {
			t.Fatalf("Plans: %+v, %v", all, err)
		}
		var said plan.Summary
		if err := json.Unmarshal(all[0].Summary, &said); err != nil || said != document.Summary() {
			t.Errorf("the list says %s (%v), want %+v", all[0].Summary, err, document.Summary())
		}
		all[0].Summary, first.Document = nil, nil
		if diff := cmp.Diff(first, all[0]); diff != "" {
			t.Errorf("Plans: %s", diff)
		}
		rows, err := tx.Provisioned()
		held.Document = nil
		if diff := cmp.Diff([]corral.Plan{held}, rows); diff != "" || err != nil {
			t.Errorf("Provisioned: %v %s", err, diff)
		}
		row, err := tx.PlanRow(held.ID)
		if diff := cmp.Diff(held, row); diff != "" || err != nil {
			t.Errorf("PlanRow: %v %s", err, diff)
		}
		return nil
	})
}
