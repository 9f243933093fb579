package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/store"
)

// A run's usage is the last value reported, regardless of how often; holdings follow from the attempts' times.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plan := w.createPlan(w.newPlan())
	planned := w.newGlidein()
	planned.Labels = map[string]string{"plan": fmt.Sprint(plan.ID)}
	live := w.attempt(w.createGlidein(planned), submitted, started)
	over := w.attempt(w.createGlidein(w.newGlidein()), submitted, started, ended(corral.OutcomeExpired))
	w.attempt(w.createGlidein(w.newGlidein()), submitted)
	run := w.createRun(w.newRun("/runs/1"))
	hour := live.StartedAt.Unix() / 3600
	rows := map[store.UsageKey]store.Taken{
		{Attempt: live.ID, Hour: hour}:     {Used: 1000, Lost: 10},
		{Attempt: live.ID, Hour: hour - 1}: {Used: 7},
		{Attempt: over.ID, Hour: hour - 1}: {Used: 2000},
		{Attempt: 0, Hour: hour}:           {Used: 5},
	}
	for _, anew := range []bool{true, false, true} {
		w.write(func(tx *store.Tx) error { return tx.SetUsage(run.ID, rows, anew) })
	}
	w.write(func(tx *store.Tx) error {
		return tx.SetUsage(run.ID, map[store.UsageKey]store.Taken{{Attempt: over.ID, Hour: hour - 1}: {Used: 2500}}, false)
	})
	work := func(in usage.Window) (all []usage.Work) {
		w.view(func(tx *store.Tx) (err error) { all, err = tx.Work(in); return err })
		return all
	}
	begin := time.Unix(hour*3600, 0).UTC()
	all := usage.Window{Since: begin.Add(-2 * time.Hour), Until: begin.Add(time.Hour)}
	want := []usage.Work{
		{Attempt: 0, User: actor, Workflow: run.Workflow, Used: 5},
		{Attempt: live.ID, User: actor, Site: "local", Workflow: run.Workflow, Used: 1007, Lost: 10},
		{Attempt: over.ID, User: actor, Site: "local", Workflow: run.Workflow, Used: 2500},
	}
	if diff := cmp.Diff(want, work(all)); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	before := usage.Window{Since: all.Since, Until: begin}
	if diff := cmp.Diff([]usage.Work{
		{Attempt: live.ID, User: actor, Site: "local", Workflow: run.Workflow, Used: 7}, want[2],
	}, work(before)); diff != "" {
		t.Errorf("work of the hour before (-want +got):\n%s", diff)
	}

	var held []usage.Attempt
	now := live.StartedAt.Add(90 * time.Minute)
	err := w.db.ViewAt(t.Context(), now, func(tx *store.Tx) (err error) {
		held, err = tx.Holdings(usage.Window{Since: all.Since, Until: now})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]usage.Attempt{
		{ID: live.ID, User: actor, Site: "local", Workflow: plan.Workflow, Cores: 8, From: live.StartedAt, To: now},
		{ID: over.ID, User: actor, Site: "local", Cores: 8, From: over.StartedAt, To: over.EndedAt},
	}, held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	err = w.db.ViewAt(t.Context(), now, func(tx *store.Tx) (err error) {
		held, err = tx.Holdings(usage.Window{Since: over.EndedAt.Add(time.Minute), Until: now})
		return err
	})
	if err != nil || len(held) != 1 || held[0].ID != live.ID {
		t.Errorf("held after one had ended: %v, %v", held, err)
	}
	for who, want := range map[string]int{"bob": 0, actor: 3} {
		var did []usage.Work
		err = w.db.Owner(who).View(t.Context(), func(tx *store.Tx) (err error) {
			if did, err = tx.Work(all); err == nil {
				held, err = tx.Holdings(usage.Window{Since: all.Since, Until: now})
			}
			return err
		})
		if err != nil || len(did) != want || len(held) != min(want, 2) {
			t.Errorf("%s is shown %v and %v, %v; want %d rows of work", who, did, held, err, want)
		}
	}
}
