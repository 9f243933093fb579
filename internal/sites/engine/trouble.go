package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	troubleMin = time.Second // how long a site in trouble is left alone at first; it doubles
	troubleMax = time.Minute

	// A trouble that lasted for toldTrouble is told in the site's history once it is over.
	toldTrouble = time.Minute
)

// A trouble is what keeps us from a site, if anything does. It is with the site's row for people to see; nothing fails
// of it, since a network that is down says nothing of the jobs behind it.
type trouble struct {
	line  *line
	pause time.Duration // before the next try
	last  string        // what it is; empty: there is none
}

// enter records what keeps us from the site, and returns how long it is left alone: longer each time, with jitter,
// so that many sites behind one broken thing do not come back all at once.
func (t *trouble) enter(ctx context.Context, now time.Time, err error) time.Duration {
	t.line.close() // whatever the connection was good for
	t.pause = min(max(2*t.pause, troubleMin), troubleMax)
	pause := t.pause + rand.N(t.pause/4+1)
	var paused *gridsite.Paused
	if errors.As(err, &paused) { // the connection has a pause of its own, and two would add up
		pause = min(max(paused.Until.Sub(now), pollBusy), troubleMax)
	}
	found := siteaccess.Trouble(err, now)
	if found.Why == t.last {
		t.record(ctx, func(tx *store.Tx) error { return tellWaiting(tx, t.line.id) })
		return pause
	}
	t.last = found.Why
	t.line.lg.Warn("site in trouble", "site", t.line.id, "err", err, "again_in", pause)
	t.record(ctx, func(tx *store.Tx) error {
		_, err := tx.SetSite(t.line.id, func(s *corral.Site) {
			if !s.Trouble.Since.IsZero() {
				found.Since = s.Trouble.Since
			}
			s.Trouble = found
		})
		return err
	})
	return pause
}

// record writes to the store, or to the log if that fails as well.
func (t *trouble) record(ctx context.Context, fn func(*store.Tx) error) {
	if err := t.line.write(ctx, fn); err != nil && ctx.Err() == nil {
		t.line.lg.Error("the trouble of a site is not recorded", "site", t.line.id, "err", err)
	}
}

// tellWaiting has those say why that wait for the site, once its trouble is no passing one: glideins, and attempts that
// the site was asked for and has not confirmed. It is called when the same trouble is met for the second time.
func tellWaiting(tx *store.Tx, id corral.SiteID) error {
	site, err := tx.Site(id)
	if err != nil {
		return err
	}
	waiting, err := tx.Glideins(store.GlideinFilter{Site: id, Live: true, InBrief: true})
	for _, g := range waiting {
		if g.State == corral.GlideinWaiting && err == nil {
			_, err = tx.SettleGlidein(g.ID, corral.Lack{})
		}
		for _, a := range g.Live() {
			if a.State == corral.JobNew && err == nil {
				_, err = tx.NoteWaits(a.ID, site.Lack().Why)
			}
		}
	}
	return err
}

// tellSlow records that the site gives no answer, unless it has a trouble already. The next step, which knocks at a
// site with a trouble, finds out whether it is over.
func tellSlow(tx *store.Tx, id corral.SiteID, why error) error {
	site, err := tx.Site(id)
	if err != nil || site.Trouble.Why != "" {
		return err
	}
	if _, err = tx.SetSite(id, func(s *corral.Site) { s.Trouble = siteaccess.Trouble(why, tx.Now()) }); err != nil {
		return err
	}
	return tellWaiting(tx, id)
}

// leave says so, once the site has done all that was asked.
func (t *trouble) leave(ctx context.Context) error {
	if t.last == "" {
		return nil
	}
	t.line.lg.Info("site is out of trouble", "site", t.line.id)
	t.pause, t.last = 0, ""
	return t.line.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		var was corral.SiteTrouble
		_, err := tx.SetSite(t.line.id, func(s *corral.Site) { was, s.Trouble = s.Trouble, corral.SiteTrouble{} })
		lasted := tx.Now().Sub(was.Since)
		if err != nil || was.Why == "" || lasted < toldTrouble {
			return err
		}
		return tx.Log(corral.ObjectSite, int64(t.line.id), "trouble",
			fmt.Sprintf("over after %s: %s", lasted.Round(time.Second), was.Why))
	})
}

// knock asks a site in trouble for next to nothing, before it is asked for more: only what it answers can end the
// trouble, and a step that asks for nothing else does not. A READY site to which no connection stands is knocked at
// too, so that a person learns of a login that is needed before something waits for it.
func (t *trouble) knock(ctx context.Context, site corral.Site) error {
	if site.Trouble.Why == "" && (site.State != corral.SiteReady || t.line.reach.Stands(site)) {
		return nil
	}
	t.last = site.Trouble.Why // of an earlier corrald
	if err := t.line.open(ctx, site); err != nil {
		return err
	}
	if err := t.line.access.Head.Ping(ctx); err != nil {
		return fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	return nil
}
