// Package engine is the loop around reconcile: it observes sites, records what changed, decides, and
// acts.
//
// Each site has a goroutine of its own, so that one in trouble does not slow the others. A step of it
// is always the same: poll the site's live jobs in one round trip, record what was seen, load the
// recorded world, let reconcile decide, perform the actions. Before a site is asked for anything the
// intent is recorded; after a crash it is looked up by its tag before it is repeated.
//
// Clusters holds the personal clusters' dispatchers and is the gate through which workers come in.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/staging"
)

// Actor is the name under which corrald itself changes things.
const Actor = "corrald"

// Config says where the engine's collaborators are. All fields but Supply, Tokens, Reach, Schemes and Open are required.
type Config struct {
	Key     Key                 // makes the attempts' tokens
	Depot   *Depot              // where worker packages and pilot binaries come from
	Address Address             // where workers dial in
	Supply  Supply              // how packages get to sites
	Tokens  reconcile.Lifetimes // of tokens for HTCondor pools; the zero value means the usual ones
	Reach   *Reach              // the connections to sites; nil: it has no backends

	Schemes map[string]staging.Open // how mirrors are read with other URLs than http, https and file

	// Open reaches a site, in place of Reach: a simulated one, say.
	Open func(context.Context, corral.Site) (gridsite.Access, error)
}

// usualTokens are good for a day in the queue, and for a clock, or a batch system, that is late by minutes.
var usualTokens = reconcile.Lifetimes{Queue: 24 * time.Hour, Renew: time.Hour, Margin: 10 * time.Minute}

// An Engine keeps the sites as they were asked to be.
type Engine struct {
	lg       *slog.Logger
	db       *store.DB
	clusters *Clusters
	cfg      Config
	catalog  *Catalog
	open     opener
	probing  sync.Map // tags of the probes of this process
	logins   bell     // rings after each login of a person
}

// An opener reaches a site and its batch system.
type opener func(context.Context, corral.Site) (gridsite.Access, error)

// New returns an engine that works once Run is called.
func New(lg *slog.Logger, db *store.DB, clusters *Clusters, cfg Config) *Engine {
	if cfg.Tokens == (reconcile.Lifetimes{}) {
		cfg.Tokens = usualTokens
	}
	if cfg.Reach == nil {
		cfg.Reach = NewReach(gridsite.Backends{})
	}
	cfg.Reach.owner = cfg.Key.owner()
	if cfg.Open == nil {
		cfg.Open = cfg.Reach.Open
	}
	return &Engine{lg: lg, db: db, clusters: clusters, cfg: cfg, open: cfg.Open, catalog: newCatalog(lg, db, cfg.Depot, cfg.Supply.Pace, cfg.Schemes)}
}

// Catalog returns what the engine knows of packages.
func (e *Engine) Catalog() *Catalog { return e.catalog }

// Run serves all sites until ctx ends and returns when every site's goroutine is gone. Jobs at the
// sites go on: the next Run adopts them.
func (e *Engine) Run(ctx context.Context) error {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards serving
		serving = map[corral.SiteID]bool{}
	)
	defer wg.Wait()
	if err := e.catalog.register(ctx); err != nil {
		return err
	}
	for {
		changed := e.db.Changed(store.Subject{Object: corral.ObjectSite})
		ids, err := e.sitesToServe(ctx)
		again := pollNothing
		if err != nil && ctx.Err() == nil {
			e.lg.Error("listing sites failed", "err", err)
			again = troubleMin
		}
		mu.Lock()
		for _, id := range ids {
			if serving[id] {
				continue
			}
			serving[id] = true
			wg.Go(func() {
				newSiteLoop(e, id).run(ctx)
				mu.Lock()
				defer mu.Unlock()
				delete(serving, id)
			})
		}
		mu.Unlock()
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// sitesToServe returns the sites that may still need something.
func (e *Engine) sitesToServe(ctx context.Context) (ids []corral.SiteID, err error) {
	err = e.db.View(ctx, func(tx *store.Tx) error {
		sites, err := tx.SitesToServe()
		for _, s := range sites {
			ids = append(ids, s.ID)
		}
		return err
	})
	return ids, err
}

// Pace of a site's loop. A poll costs a process or a round trip at the site, so it happens often only
// while something is about to change.
const (
	pollSoon    = 50 * time.Millisecond // after an action, or when workers came or went
	pollBusy    = 200 * time.Millisecond
	pollShare   = 4 // a poll takes at most one of so many parts of the time: hundreds of jobs on a busy machine leave none to spare
	pollSteady  = 2 * time.Second
	pollNothing = time.Minute // nothing is to be polled; what happens ends the wait sooner
	troubleMin  = time.Second
	troubleMax  = time.Minute
	busyFor     = 5 * time.Second // how long after a change the pace stays busy
	visibility  = 5 * time.Second // how long the fork dialect may hide a job it accepted
	cancelGrace = 5 * time.Second // between asking a job to leave and forcing it
)

// alarms are what ends a loop's rest; they are taken before the step, so that nothing is missed.
type alarms struct{ recorded, moved, loggedIn, registered, lost <-chan struct{} }

func (l *siteLoop) alarms() alarms {
	return alarms{
		recorded:   l.e.db.Changed(store.Subject{Object: corral.ObjectSite, ID: int64(l.id)}),
		moved:      l.e.db.Changed(store.Subject{Object: corral.ObjectCluster}),
		loggedIn:   l.e.logins.next(),
		registered: l.e.clusters.Changed(),
		lost:       l.e.cfg.Reach.lost(l.id),
	}
}

// run steps until ctx ends or the site needs nothing any more.
func (l *siteLoop) run(ctx context.Context) {
	defer l.close()
	defer l.endRelay()
	for {
		wake := l.alarms()
		next, err := l.step(ctx, time.Now())
		switch {
		case errors.Is(err, errNothingLeft):
			l.endRelay()
			l.e.cfg.Reach.Leave(l.id)
			return
		case ctx.Err() != nil:
			return
		case corral.KindOf(err) == corral.Conflict: // somebody changed what was just decided about
			l.e.lg.Info("deciding again", "site", l.id, "err", err)
			next = pollBusy
		case err != nil:
			next = l.inTrouble(ctx, err)
			wake = alarms{loggedIn: wake.loggedIn} // only time helps now, or a person
		case wake.lost == nil: // the step may have made a connection
			wake.lost = l.e.cfg.Reach.lost(l.id)
		}
		l.rest(ctx, next, wake)
	}
}

// rest waits for so long, or until something is recorded. That workers came or went is seen at the next poll, which is
// due sooner then: where hundreds do, each would cost a poll.
func (l *siteLoop) rest(ctx context.Context, most time.Duration, wake alarms) {
	end := time.Now().Add(most)
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case <-wake.registered:
			now := time.Now()
			l.busy(now)
			timer.Reset(min(end.Sub(now), max(l.nextPoll().Sub(now), pollSoon)))
			wake.registered = nil
			continue
		case <-ctx.Done():
		case <-wake.recorded:
		case <-wake.moved:
		case <-wake.loggedIn:
		case <-wake.lost:
		case <-timer.C:
		}
		return
	}
}
