package admit_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// All nouns make the same checks in the same order: a request in which everything is wrong fails the first check, and
// the next one once that is repaired. A refused request does not leave a row, even if the caller commits.
func TestOrderOfQuestions(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(nouns)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noun, most := nouns[name], access.Most{}
			for _, q := range noun.quotas {
				most[q] = 1
			}
			w := newWorld(t, nil)
			poor := w.poor()
			var second home
			w.write(func(tx *store.Tx) (err error) {
				if second, err = newHome(tx, "ann", "second"); err == nil {
					err = noun.create(tx, "ann", w.homes["ann"], 0)
				}
				return err
			})
			w.db.Limit(most)
			ask := func(at home) func(*store.Tx) error {
				return func(tx *store.Tx) error { return noun.create(tx, "ann", at, 1) }
			}
			foreign := home{w.homes["bob"].site, w.homes["bob"].cluster, true}

			w.move("ann", corral.OwnerSuspend)
			w.refused("account", corral.Forbidden, "owner", ask(foreign))
			w.move("ann", corral.OwnerResume)

			if noun.site != "" {
				w.refused("site", corral.Forbidden, noun.site, ask(home{foreign.site, poor.cluster, true}))
			}
			if noun.cluster != "" {
				w.refused("cluster", corral.Forbidden, noun.cluster, ask(home{poor.site, foreign.cluster, true}))
			}
			if noun.poverty != "" {
				w.refused("possible", noun.poverty, noun.poorAt, ask(poor))
			}
			if len(noun.quotas) > 0 {
				w.refused("quota", corral.Forbidden, "", ask(second))
			}
			if noun.hasNames && len(noun.quotas) > 0 { // more room would not help
				place := map[string]string{"site": "name", "token": "name"}[name]
				w.refused("the name is taken", corral.Conflict, place, func(tx *store.Tx) error {
					return noun.create(tx, "ann", second, 0)
				})
			}
			w.db.Limit(nil)
			if err := w.try(ask(second)); err != nil {
				t.Errorf("nothing is wrong: %v", err)
			}
		})
	}
}

// move moves an owner's account to another state.
func (w *world) move(owner string, move corral.OwnerMove) {
	w.Helper()
	w.write(func(tx *store.Tx) error { return store.Done(tx.MoveOwner(owner, move, "a leak")) })
}

// bearing requests a pilot for ann with a label; allowed lists the reserved labels that the pilot may have.
func (w *world) bearing(label, value string, allowed ...string) func(*store.Tx) error {
	p := newPilot("ann", w.homes["ann"])
	p.Request.Labels, p.Labels = map[string]string{label: value}, allowed
	return func(tx *store.Tx) error { return store.Done(admit.Glidein(tx, p)) }
}

// asks returns a request for a row, for world.refused.
func asks[T any](fn func(*store.Tx, T) (T, error), row T) func(*store.Tx) error {
	return func(tx *store.Tx) error { return store.Done(fn(tx, row)) }
}

// Some refusals apply only to some nouns.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	own := w.homes["ann"]
	var theirs corral.Glidein
	var plans [3]corral.Plan // bob's plan, ann's provisioned plan, and ann's plan that is not provisioned
	var scaled, busy home
	w.write(func(tx *store.Tx) (err error) {
		if theirs, err = admit.Glidein(tx, newPilot("bob", w.homes["bob"])); err != nil {
			return err
		}
		for i, owner := range []string{"bob", "ann", "ann"} {
			if plans[i], err = admit.Plan(tx, newPlan(owner, w.homes[owner])); err != nil {
				return err
			}
		}
		if plans[1], err = admit.Provision(tx, plans[1]); err != nil {
			return err
		}
		if scaled, err = newHome(tx, "ann", "scaled"); err != nil {
			return err
		}
		if _, err = admit.Scale(tx, newScale("ann", scaled)); err != nil {
			return err
		}
		if busy, err = newHome(tx, "ann", "busy"); err == nil {
			_, err = admit.Ensemble(tx, newEnsemble("ann", busy, 0))
		}
		return err
	})
	labelled := func(label, value string) corral.Run {
		r := newRun("ann", own, 1)
		r.Labels = map[string]string{label: value}
		return r
	}
	follower := newPilot("ann", own)
	follower.Follows.Glidein = theirs.ID
	elsewhere, plan2 := labelled("plan", "2"), labelled("plan", "2")
	elsewhere.Cluster = busy.cluster.ID
	at := func(p corral.Plan, h home) corral.Plan { p.Cluster = h.cluster.ID; return p }
	for what, c := range map[string]struct {
		kind  corral.Kind
		place string
		do    func(*store.Tx) error
	}{
		"a person's glidein bears a plan's label":     {corral.Invalid, "labels.plan", w.bearing("plan", "2")},
		"a scale's glidein bears another's label":     {corral.Invalid, "labels.ensemble", w.bearing("ensemble", "1", "scale")},
		"a glidein bears the label of bob's plan":     {corral.Forbidden, "labels.plan", w.bearing("plan", "1", "plan")},
		"a glidein bears the label of bob's scale":    {corral.Forbidden, "labels.scale", w.bearing("scale", "2", "scale")},
		"a glidein bears the label of no ensemble":    {corral.NotFound, "labels.ensemble", w.bearing("ensemble", "9", "ensemble")},
		"a glidein follows bob's":                     {corral.Forbidden, "follows_id", func(tx *store.Tx) error { return store.Done(admit.Glidein(tx, follower)) }},
		"an adopted glidein is bob's site's":          {corral.Forbidden, "site", asks(admit.Adopt, corral.Glidein{Owner: "ann", Site: w.homes["bob"].site.ID, Cluster: own.cluster.ID})},
		"a run has a scale's label":                   {corral.Invalid, "labels.scale", asks(admit.Run, labelled("scale", "1"))},
		"a run's plan is no number":                   {corral.Invalid, "labels", asks(admit.Run, labelled("plan", "x"))},
		"a run's plan does not exist":                 {corral.NotFound, "labels", asks(admit.Run, labelled("plan", "9"))},
		"a run's plan is bob's":                       {corral.Forbidden, "labels", asks(admit.Run, labelled("plan", "1"))},
		"a run's plan is for another cluster":         {corral.Invalid, "labels", asks(admit.Run, elsewhere)},
		"a run's plan is not begun":                   {corral.Conflict, "labels", asks(admit.Run, labelled("plan", "3"))},
		"the run of an ensemble has a plan":           {corral.Invalid, "labels.plan", asks(admit.RunOfEnsemble, plan2)},
		"a plan is begun on a scaled cluster":         {corral.Conflict, "cluster", asks(admit.Provision, at(plans[2], scaled))},
		"a plan is begun beside an ensemble":          {corral.Conflict, "cluster", asks(admit.Provision, at(plans[2], busy))},
		"an ensemble is on a scaled cluster":          {corral.Conflict, "cluster", asks(admit.Ensemble, newEnsemble("ann", scaled, 1))},
		"an ensemble is beside another":               {corral.Conflict, "cluster", asks(admit.Ensemble, newEnsemble("ann", busy, 1))},
		"an ensemble is beside a plan":                {corral.Conflict, "cluster", asks(admit.Ensemble, newEnsemble("ann", own, 1))},
		"a scale is beside another":                   {corral.Conflict, "cluster", scale(newScale("ann", scaled))},
		"a scale is beside an ensemble":               {corral.Conflict, "cluster", scale(newScale("ann", busy))},
		"a scale is beside a plan":                    {corral.Conflict, "cluster", scale(newScale("ann", own))},
		"a scale's workers are too large":             {corral.Unsatisfiable, "cpus", scale(wide(newScale("ann", own)))},
		"a token may do more than the one that makes": {corral.Forbidden, "role", mint(corral.RoleAdministrator, 0)},
		"a token is made with one that is none":       {corral.NotFound, "", mint(corral.RoleUser, 7)},
		"a profile that was changed meanwhile grows":  {corral.NotFound, "", asks(func(tx *store.Tx, p corral.Profile) (corral.Profile, error) { return admit.Profile(tx, p, "") }, corral.Profile{ID: 9, Owner: "ann"})},
	} {
		w.refused(what, c.kind, c.place, c.do)
	}
}

func scale(n admit.NewScale) func(*store.Tx) error {
	return func(tx *store.Tx) error { return store.Done(admit.Scale(tx, n)) }
}

func wide(n admit.NewScale) admit.NewScale {
	n.Terms.CPUs = machine.CPUs + 1
	return n
}

// mint requests a token for ann, made with the token that has the given id.
func mint(role corral.Role, parent corral.TokenID) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		return store.Done(admit.Token(tx, access.For("ann"), corral.Token{Owner: "ann", Name: "t", Role: role, Digest: digestOf(1), Parent: parent}))
	}
}

// A plan that is revised is the only one on its cluster during its run.
func TestRevisedPlanIsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	row := newPlan("ann", w.homes["ann"])
	row.Auto = true
	var other corral.Plan
	w.write(func(tx *store.Tx) error {
		p, err := admit.Plan(tx, row)
		if err == nil {
			_, err = admit.Provision(tx, p)
		}
		if err != nil {
			return err
		}
		r := newRun("ann", w.homes["ann"], 0)
		r.Labels = map[string]string{corral.PlanLabel: "1"}
		if _, err = admit.Run(tx, r); err == nil {
			other, err = admit.Plan(tx, row)
		}
		return err
	})
	w.refused("another one begins", corral.Conflict, "cluster", asks(admit.Provision, other))
	w.write(func(tx *store.Tx) error { return store.Done(tx.MoveRun(1, corral.RunFail, "")) })
	w.write(asks(admit.Provision, other))
}

// Runs of an ensemble were admitted with it, so quotas do not apply to them. They count when a quota is checked for
// other runs.
func TestRunsOfAnEnsembleWereAdmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, access.Most{"runs": 1, "runs-open": 1})
	own := w.homes["ann"]
	w.write(asks(admit.Ensemble, newEnsemble("ann", own, 0)))
	for n := range 3 {
		r := newRun("ann", own, n)
		r.Labels = map[string]string{record.Label: "1"}
		w.write(asks(admit.RunOfEnsemble, r))
	}
	w.refused("a run", corral.Forbidden, "", asks(admit.Run, newRun("ann", own, 3)))
}

// The pilots of a plan are charged to the balance of their site together, or not at all.
func TestBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, access.Most{"glideins": 2})
	own := w.homes["ann"]
	var p corral.Plan
	w.write(func(tx *store.Tx) (err error) {
		terms := corral.SiteTerms{Price: "1SU/cpu-hour", Billing: "1s", Allocation: "3SU"}
		if own.site, err = tx.SetSite(own.site.ID, func(s *corral.Site) { s.SiteTerms = terms }); err != nil {
			return err
		}
		if p, err = admit.Plan(tx, newPlan("ann", own)); err == nil {
			p, err = admit.Provision(tx, p)
		}
		return err
	})
	hours := func(n int, each time.Duration) (pilots []plan.Pilot) {
		for range n {
			pilots = append(pilots, plan.Pilot{Site: "home",
				Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(each)},
				End:   corral.Seconds(each)})
		}
		return pilots
	}
	may := func(pilots []plan.Pilot) func(*store.Tx) error {
		return func(tx *store.Tx) error { return admit.Pilots(tx, p, pilots, p.Sites) }
	}
	w.refused("three pilots", corral.Forbidden, "", may(hours(3, time.Minute)))
	w.refused("four hours", corral.Unsatisfiable, "site home", may(hours(2, 2*time.Hour)))
	w.write(may(hours(2, time.Hour)))

	pilot := newPilot("ann", own)
	pilot.Request.Labels, pilot.Labels = map[string]string{"plan": "1"}, []string{"plan"}
	var g corral.Glidein
	w.write(func(tx *store.Tx) (err error) { g, err = admit.Glidein(tx, pilot); return err })
	reserve := func(each time.Duration) func(*store.Tx) error {
		return func(tx *store.Tx) error { return admit.Reserve(tx, p.ID, hours(1, each), []corral.Glidein{g}) }
	}
	w.refused("a pilot of four hours", corral.Unsatisfiable, "site home", reserve(4*time.Hour))
	w.write(reserve(time.Hour))

	// A pilot without a plan is admitted as long as its first minute can be paid for.
	alone := func(tx *store.Tx) error { return store.Done(admit.Glidein(tx, newPilot("ann", own))) }
	w.write(alone)
	w.write(func(tx *store.Tx) (err error) {
		own.site, err = tx.SetSite(own.site.ID, func(s *corral.Site) { s.Allocation = "1SU" })
		return err
	})
	w.refused("a pilot when all is reserved", corral.Unsatisfiable, "site home", alone)
}
