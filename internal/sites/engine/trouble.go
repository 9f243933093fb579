package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	troubleMin = time.Second // how long a site in trouble is first left alone; the time doubles
	troubleMax = time.Minute

	// A trouble that lasted at least toldTrouble is recorded in the site's history once it is over.
	toldTrouble = time.Minute
)

// A trouble prevents corrald from reaching a site. It is stored in the site's row for people to see; it makes no job
// fail, because a broken network is not evidence about the jobs behind it.
type trouble struct {
	line  *line
	pause time.Duration // before the next attempt
	last  string        // description; empty: no trouble
}

// enter records the trouble with the site and returns how long the site is left alone. The time increases with each
// call and has jitter, so that many sites behind one broken component do not return all at once.
func (t *trouble) enter(ctx context.Context, now time.Time, err error) time.Duration {
	t.line.close() // its connection may be broken
	t.pause = min(max(2*t.pause, troubleMin), troubleMax)
	pause := t.pause + rand.N(t.pause/4+1)
	var paused *gridsite.Paused
	if errors.As(err, &paused) { // the connection has its own pause, and two would add up
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

// record writes to the store or, if that fails, reports the failure in the log.
func (t *trouble) record(ctx context.Context, fn func(*store.Tx) error) {
	if err := t.line.write(ctx, fn); err != nil && ctx.Err() == nil {
		t.line.lg.Error("a site's trouble could not be recorded", "site", t.line.id, "err", err)
	}
}

// tellWaiting sets the reason of the objects that wait for the site, once its trouble persists: glideins, and
// attempts that the site has not confirmed. It is called when the same trouble occurs for the second time.
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

// tellSlow records that the site does not answer, unless a trouble is already recorded. The next step, which knocks
// at a site in trouble, determines whether the trouble is over.
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

// leave records the end of the trouble after a step without errors.
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

// knock sends a minimal request to a site in trouble before other requests: only an answer can end the trouble, and a
// step may send no other request. It also knocks at a READY site without an open connection, so that people learn
// about a required login before any work waits for it.
func (t *trouble) knock(ctx context.Context, site corral.Site) error {
	if site.Trouble.Why == "" && (site.State != corral.SiteReady || t.line.reach.Stands(site)) {
		return nil
	}
	t.last = site.Trouble.Why // as recorded by an earlier corrald
	if err := t.line.open(ctx, site); err != nil {
		return err
	}
	return wrap.Errorf(t.line.access.Head.Ping(ctx), "reaching site %s", site.Name)
}
