// Package worldstate reads the data for reconcile's decisions from the store, and stores the decisions about
// glideins.
//
// It is the one place where rows become a World, so that the engine, which decides, and the property test that
// compares the store with World.Apply read the same data. It is a separate package because reconcile does not depend
// on the store, and the store makes no decisions.
package worldstate

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
)

// Of reads the data that one glidein's next step depends on, besides the glidein itself: the world as if it were the
// only glidein at its site. The cost does not depend on the number of glideins at the site.
func Of(tx *store.Tx, g corral.Glidein) (w reconcile.World, err error) {
	if w.Glideins, err = withFollowed(tx, []corral.Glidein{g}); err != nil {
		return w, err
	}
	if w.Site, err = tx.Site(g.Site); err != nil {
		return w, err
	}
	told, err := tx.Told(g.Site)
	if err != nil {
		return w, err
	}
	w.Held = corral.NewHold(told)
	w.Waits, err = waits(tx, g.Site, g)
	return w, err
}

// withFollowed returns glideins together with those that they wait to take over from, even if these are over, because
// a follower's future depends on them.
func withFollowed(tx *store.Tx, glideins []corral.Glidein) ([]corral.Glidein, error) {
	known := make(map[corral.GlideinID]bool, len(glideins))
	for _, g := range glideins {
		known[g.ID] = true
	}
	here := len(glideins)
	for _, g := range glideins[:here] {
		for of := g; of.Follows != 0 && len(g.Attempts) == 0 && !g.State.Terminal() && !known[of.Follows]; {
			p, err := tx.GlideinInBrief(of.Follows)
			if err != nil {
				return nil, err
			}
			known[p.ID] = true
			glideins = append(glideins, p)
			if of = p; !reconcile.Dropped(&p) {
				break
			}
		}
	}
	if len(glideins) > here {
		slices.SortFunc(glideins, func(a, b corral.Glidein) int { return cmp.Compare(a.ID, b.ID) })
	}
	return glideins, nil
}

// waits reads the latest waits of a site if one of the glideins overlaps or follows another; otherwise they are not
// needed.
func waits(tx *store.Tx, id corral.SiteID, glideins ...corral.Glidein) ([]corral.Wait, error) {
	if !slices.ContainsFunc(glideins, func(g corral.Glidein) bool { return g.Overlap > 0 || g.Follows != 0 }) {
		return nil, nil
	}
	return tx.Waits(store.WaitFilter{Site: id, Last: reconcile.WaitsKept})
}

// World reads the recorded state of a site as of the transaction's time. It does not set the fields whose values only
// the engine has.
func World(tx *store.Tx, id corral.SiteID) (w reconcile.World, err error) {
	if w.Site, err = tx.Site(id); err != nil {
		return w, err
	}
	if w.Told, err = tx.Told(id); err != nil {
		return w, err
	}
	w.Held = corral.NewHold(w.Told)
	slices.Reverse(w.Told)
	if w.Over, err = tx.AttemptsOverSince(id, tx.Now().Add(-reconcile.SubmitWindow)); err != nil {
		return w, err
	}
	awake := store.GlideinFilter{Site: id, Live: true, InBrief: true}
	if w.Site.State == corral.SiteReady { // in other states, actions for any glidein may be due
		awake.WakesBy = tx.Now().Add(reconcile.Ahead)
		if w.Later, err = tx.NextToWake(id, awake.WakesBy); err != nil {
			return w, err
		}
	}
	if w.Glideins, err = tx.Glideins(awake); err != nil {
		return w, err
	}
	if w.Glideins, err = withFollowed(tx, w.Glideins); err != nil {
		return w, err
	}
	if w.Waits, err = waits(tx, id, w.Glideins...); err != nil {
		return w, err
	}
	if w.Suspended, err = tx.Refusal(w.Site.Owner); err != nil {
		return w, err
	}
	w.Jobs, err = tx.Jobs(store.JobFilter{Site: id, OfSite: true})
	return w, err
}
