package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// Login logs in at a site with the answers of a person. A site that is to be created has no id yet.
func (e *Engine) Login(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error {
	defer e.logins.ring() // if it failed, the site is in trouble
	return e.cfg.Reach.Login(ctx, site, ask, acceptHostKey)
}

// A bell wakes those who wait for it.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // nil: nobody waits
}

// next is closed when the bell rings next.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// inTrouble records what keeps us from the site, and returns how long it is left alone: longer each time, with jitter,
// so that many sites behind one broken thing do not come back all at once.
func (l *siteLoop) inTrouble(ctx context.Context, err error) time.Duration {
	l.close() // whatever the connection was good for
	l.trouble = min(max(2*l.trouble, troubleMin), troubleMax)
	pause := l.trouble + rand.N(l.trouble/4+1)
	var paused *gridsite.Paused
	if errors.As(err, &paused) { // the connection has a pause of its own, and two would add up
		pause = min(max(time.Until(paused.Until), pollBusy), troubleMax)
	}
	t := troubleOf(err)
	if t.Why == l.lastTrouble {
		if err := l.tellWaiting(ctx); err != nil && ctx.Err() == nil {
			l.e.lg.Error("glideins are not told of the trouble of their site", "site", l.id, "err", err)
		}
		return pause
	}
	l.lastTrouble = t.Why
	l.e.lg.Warn("site in trouble", "site", l.id, "err", err, "again_in", pause)
	err = l.e.db.Write(ctx, Actor, func(tx *store.Tx) error {
		_, err := tx.SetSite(l.id, func(s *corral.Site) {
			if !s.Trouble.Since.IsZero() {
				t.Since = s.Trouble.Since
			}
			s.Trouble = t
		})
		return err
	})
	if err != nil && ctx.Err() == nil {
		l.e.lg.Error("the trouble of a site is not recorded", "site", l.id, "err", err)
	}
	return pause
}

// tellWaiting has the glideins that wait for the site say why, once its trouble is no passing one.
func (l *siteLoop) tellWaiting(ctx context.Context) error {
	return l.e.db.Write(ctx, Actor, func(tx *store.Tx) error {
		waiting, err := tx.Glideins(store.GlideinFilter{Site: l.id, Live: true, InBrief: true})
		for _, g := range waiting {
			if g.State == corral.GlideinWaiting && err == nil {
				_, err = tx.SettleGlidein(g.ID, corral.Lack{})
			}
		}
		return err
	})
}

// troubleOf says in words that stay the same while the trouble does what keeps us from a site.
func troubleOf(err error) corral.SiteTrouble {
	t := corral.SiteTrouble{Why: err.Error(), Since: time.Now().UTC()}
	var key *gridsite.HostKeyError
	var login *gridsite.LoginError
	var paused *gridsite.Paused
	switch {
	case errors.As(err, &key):
		t.LoginNeeded, t.Why = true, key.Error()
	case errors.As(err, &login):
		t.LoginNeeded, t.Why = true, login.Error()
	case errors.As(err, &paused):
		t.Why = paused.Error()
	}
	return t
}

// toldTrouble is how long a trouble lasts that the site's history tells of.
const toldTrouble = time.Minute

// outOfTrouble says so, once the site has done all that was asked.
func (l *siteLoop) outOfTrouble(ctx context.Context) error {
	if l.lastTrouble == "" {
		return nil
	}
	l.e.lg.Info("site is out of trouble", "site", l.id)
	l.trouble, l.lastTrouble = 0, ""
	return l.e.db.Write(ctx, Actor, func(tx *store.Tx) error {
		var was corral.SiteTrouble
		_, err := tx.SetSite(l.id, func(s *corral.Site) { was, s.Trouble = s.Trouble, corral.SiteTrouble{} })
		if lasted := tx.Now().Sub(was.Since); err == nil && was.Why != "" && lasted >= toldTrouble {
			err = tx.Log(corral.ObjectSite, int64(l.id), "trouble", fmt.Sprintf("over after %s: %s", lasted.Round(time.Second), was.Why))
		}
		return err
	})
}

// knock asks a site in trouble for next to nothing, before it is asked for more: only what it answers can end the
// trouble, and a step that asks for nothing else does not. So is a READY one to which no connection stands, that a person
// learns of a login that is needed before something waits for it.
func (l *siteLoop) knock(ctx context.Context, site corral.Site) error {
	if site.Trouble.Why == "" && (site.State != corral.SiteReady || l.e.cfg.Reach.stands(site)) {
		return nil
	}
	l.lastTrouble = site.Trouble.Why // of an earlier corrald
	if err := l.open(ctx, site); err != nil {
		return err
	}
	if err := l.access.Head.Ping(ctx); err != nil {
		return fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	return nil
}
