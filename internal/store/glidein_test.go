package store_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/google/go-cmp/cmp"
)

func TestGlideinKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	until := time.Date(2031, 2, 3, 4, 5, 6, 7e6, time.UTC)
	for _, policy := range []resubmit.Policy{
		{Mode: resubmit.Never, Retries: 3},
		{Mode: resubmit.Times, Limit: 2},
		{Mode: resubmit.Until, Deadline: until},
		{Mode: resubmit.Forever},
	} {
		g := w.newGlidein()
		g.Idle, g.Overlap, g.NotBefore = corral.Seconds(time.Minute), corral.Seconds(1500*time.Millisecond), until
		g.MinStay = corral.Seconds(time.Hour)
		g.Resubmit, g.Labels = policy, map[string]string{"team": "seismo"}
		g = w.createGlidein(g)
		if diff := cmp.Diff(g, w.glidein(g.ID)); diff != "" {
			t.Errorf("Glidein: %s", diff)
		}
		if g.SiteName != "local" || g.ClusterName != "default" || g.Resubmit != policy {
			t.Errorf("created %+v", g)
		}
	}
}

func TestCreateGlideinDerivesItsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	if g.State != corral.GlideinWaiting || g.Reason != "to be submitted" || g.Resubmit.Mode != resubmit.Never {
		t.Errorf("created %+v", g)
	}
	if got, want := w.story(corral.ObjectGlidein, int64(g.ID)), "create >NEW, derive NEW>WAITING"; got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestCreateGlideinRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var failed corral.Site
	var deleted corral.Cluster
	w.write(func(tx *store.Tx) (err error) {
		if failed, err = readySite(tx, "broken"); err != nil {
			return err
		}
		if _, err = tx.MoveSite(failed.ID, corral.SiteFail, ""); err != nil {
			return err
		}
		deleted, err = tx.CreateCluster(corral.Cluster{Name: "old", Owner: actor, Kind: corral.Embedded})
		if err != nil {
			return err
		}
		_, err = tx.RemoveCluster(deleted.ID, "")
		return err
	})
	for _, c := range []struct {
		name string
		set  func(*corral.Glidein)
		want corral.Kind
	}{
		{"no such site", func(g *corral.Glidein) { g.Site = 99 }, corral.NotFound},
		{"no such cluster", func(g *corral.Glidein) { g.Cluster = 99 }, corral.NotFound},
		{"failed site", func(g *corral.Glidein) { g.Site = failed.ID }, corral.Conflict},
		{"deleted cluster", func(g *corral.Glidein) { g.Cluster = deleted.ID }, corral.Conflict},
		{"resubmission without a limit", func(g *corral.Glidein) { g.Resubmit = resubmit.Policy{Mode: resubmit.Times} }, corral.Invalid},
		{"no hosts", func(g *corral.Glidein) { g.Hosts = 0 }, corral.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := w.newGlidein()
			c.set(&g)
			w.refused(c.want, func(tx *store.Tx) error { _, err := tx.CreateGlidein(g); return err })
		})
	}
}

func TestGlideinFollowsItsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.newGlidein()
	g.Resubmit = resubmit.Policy{Mode: resubmit.Times, Limit: 1}
	g = w.createGlidein(g)
	w.attempt(g, submitted, started, ended(corral.OutcomeExpired))
	if got := w.glidein(g.ID); got.State != corral.GlideinWaiting {
		t.Errorf("after one of two attempts it is %s: %s", got.State, got.Reason)
	}
	w.attempt(g, submitted, started, ended(corral.OutcomeExpired))
	got := w.glidein(g.ID)
	if got.State != corral.GlideinFinished || len(got.Attempts) != 2 || got.Attempts[1].Number != 2 {
		t.Errorf("after both attempts it is %+v", got)
	}
	want := "create >NEW, derive NEW>WAITING, " +
		"derive WAITING>ACTIVE, derive ACTIVE>ACTIVE, derive ACTIVE>ACTIVE, derive ACTIVE>WAITING, " +
		"derive WAITING>ACTIVE, derive ACTIVE>ACTIVE, derive ACTIVE>ACTIVE, derive ACTIVE>FINISHED"
	if got := w.story(corral.ObjectGlidein, int64(g.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestAskGlideinOnlyGrows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g, submitted)
	for _, c := range []struct {
		ask, want corral.Ask
	}{
		{corral.AskNothing, corral.AskNothing},
		{corral.AskDrain, corral.AskDrain},
		{corral.AskDrain, corral.AskDrain},
		{corral.AskCancel, corral.AskCancel},
		{corral.AskDrain, corral.AskCancel},
		{corral.AskNothing, corral.AskCancel},
	} {
		w.write(func(tx *store.Tx) (err error) { g, err = tx.AskGlidein(g.ID, c.ask, "enough"); return err })
		if g.Asked != c.want {
			t.Errorf("after %q asked = %q, want %q", c.ask, g.Asked, c.want)
		}
	}
	if g.State != corral.GlideinRemoving {
		t.Errorf("with a live attempt it is %s", g.State)
	}
	w.move(j, ended(corral.OutcomeRemoved))
	if got := w.glidein(g.ID); got.State != corral.GlideinDeleted {
		t.Errorf("after its attempt it is %s", got.State)
	}
	want := "create >NEW, derive NEW>WAITING, derive WAITING>ACTIVE, derive ACTIVE>ACTIVE, " +
		"drain ACTIVE>ACTIVE, derive ACTIVE>REMOVING, cancel REMOVING>REMOVING, derive REMOVING>REMOVING, derive REMOVING>DELETED"
	if got := w.story(corral.ObjectGlidein, int64(g.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestAskGlideinWithoutAttemptDeletesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting := w.createGlidein(w.newGlidein())
	finished := w.createGlidein(w.newGlidein())
	w.attempt(finished, submitted, started, ended(corral.OutcomeIdle))
	for _, id := range []corral.GlideinID{waiting.ID, finished.ID} {
		for range 2 { // the second request changes nothing
			w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(id, corral.AskDrain, ""); return err })
		}
		if g := w.glidein(id); g.State != corral.GlideinDeleted {
			t.Errorf("glidein %d is %s", id, g.State)
		}
	}
	w.view(func(tx *store.Tx) error {
		if list, err := tx.Glideins(store.GlideinFilter{}); len(list) != 0 || err != nil {
			t.Errorf("Glideins = %v, %v", list, err)
		}
		return nil
	})
}

func TestSettleGlideinWhenTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		g := w.newGlidein()
		g.NotBefore = time.Now().Add(time.Hour).UTC()
		g = w.createGlidein(g)
		settle := func() (reason string) {
			w.write(func(tx *store.Tx) error {
				g, err := tx.SettleGlidein(g.ID, corral.Lack{})
				reason = g.Reason
				return err
			})
			return reason
		}
		if got, want := settle(), "not before "+g.NotBefore.Format(time.RFC3339); got != want {
			t.Errorf("reason = %q, want %q", got, want)
		}
		<-time.After(time.Hour)
		if got, want := settle(), "to be submitted"; got != want {
			t.Errorf("an hour later reason = %q, want %q", got, want)
		}
	})
}

func TestGlideinsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var far corral.Site
	w.write(func(tx *store.Tx) (err error) { far, err = readySite(tx, "far"); return err })
	labelled := func(site corral.SiteID, labels map[string]string) corral.GlideinID {
		g := w.newGlidein()
		g.Site, g.Labels = site, labels
		return w.createGlidein(g).ID
	}
	a := labelled(w.site.ID, map[string]string{"team": "seismo", "run": "1"})
	b := labelled(w.site.ID, map[string]string{"team": "seismo", "a.b[0]": `"'; drop table glideins; --`})
	c := labelled(far.ID, nil)
	w.attempt(w.glidein(a), submitted, started)
	w.attempt(w.glidein(b), submitted, started, ended(corral.OutcomeIdle))
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(c, corral.AskCancel, ""); return err })

	for _, f := range []struct {
		name   string
		filter store.GlideinFilter
		want   []corral.GlideinID
	}{
		{"zero", store.GlideinFilter{}, []corral.GlideinID{a, b}},
		{"all", store.GlideinFilter{Filter: store.Filter{All: true}}, []corral.GlideinID{a, b, c}},
		{"live", store.GlideinFilter{Live: true}, []corral.GlideinID{a}},
		{"site", store.GlideinFilter{Site: far.ID, Filter: store.Filter{All: true}}, []corral.GlideinID{c}},
		{"cluster", store.GlideinFilter{Cluster: w.cluster.ID}, []corral.GlideinID{a, b}},
		{"other cluster", store.GlideinFilter{Cluster: 99}, nil},
		{"label", store.GlideinFilter{Labels: map[string]string{"team": "seismo"}}, []corral.GlideinID{a, b}},
		{"two labels", store.GlideinFilter{Labels: map[string]string{"team": "seismo", "run": "1"}}, []corral.GlideinID{a}},
		{"odd label", store.GlideinFilter{Labels: map[string]string{"a.b[0]": `"'; drop table glideins; --`}}, []corral.GlideinID{b}},
		{"other value", store.GlideinFilter{Labels: map[string]string{"team": "1"}}, nil},
		{"page", store.GlideinFilter{Filter: store.Filter{Page: store.Page{After: int64(a), Limit: 1}}}, []corral.GlideinID{b}},
		{"first page of labelled", store.GlideinFilter{Labels: map[string]string{"team": "seismo"}, Filter: store.Filter{Page: store.Page{Limit: 1}}}, []corral.GlideinID{a}},
	} {
		t.Run(f.name, func(t *testing.T) {
			var got []corral.GlideinID
			w.view(func(tx *store.Tx) error {
				list, err := tx.Glideins(f.filter)
				for _, g := range list {
					got = append(got, g.ID)
					whole, err := tx.Glidein(g.ID)
					if diff := cmp.Diff(whole, g); diff != "" || err != nil {
						t.Errorf("listed otherwise than shown: %v %s", err, diff)
					}
				}
				return err
			})
			if !slices.Equal(got, f.want) {
				t.Errorf("got %v, want %v", got, f.want)
			}
		})
	}
}

// TestHeld adds up the resources of a site's live glideins that were not asked to end, by plan.
func TestHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPlan(w.newPlan())
	of := func(hosts, cpus int, labels map[string]string) corral.Glidein {
		g := w.newGlidein()
		g.Hosts, g.CPUs, g.MemoryMiB, g.GPUs, g.Labels = hosts, cpus, 100*cpus, 0, labels
		return w.createGlidein(g)
	}
	of(1, 1, nil)
	of(1, 4, map[string]string{"team": "seismo"})
	of(2, 10, map[string]string{corral.PlanLabel: fmt.Sprint(p.ID)})
	goes := of(1, 1000, nil)
	w.attempt(goes)
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(goes.ID, corral.AskDrain, ""); return err })
	gone := of(1, 10_000, nil)
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(gone.ID, corral.AskCancel, ""); return err })
	w.view(func(tx *store.Tx) error {
		for site, want := range map[corral.SiteID]map[corral.PlanID]corral.Resources{w.site.ID: {
			0: {CPUs: 5, MemoryMiB: 500}, p.ID: {CPUs: 20, MemoryMiB: 2000}}, w.site.ID + 1: {}} {
			if got, err := tx.Held(site); !maps.Equal(got, want) || err != nil {
				t.Errorf("Held(%d) = %v, %v; want %v", site, got, err, want)
			}
		}
		return nil
	})
}
