package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// Config says where the engine's collaborators are. All fields but Supply, Tokens, Steps and Poll are required.
type Config struct {
	Key     admission.Key       // makes the attempts' tokens
	Address admission.Address   // where workers dial in
	Reach   *siteaccess.Reach   // the connections to sites
	Prober  *siteaccess.Prober  // whose probes at sites that are left the engine ends
	Catalog *delivery.Catalog   // where worker packages and pilot binaries come from
	Supply  delivery.Supply     // how packages get to sites
	Tokens  reconcile.Lifetimes // of tokens for HTCondor pools; the zero value means the usual ones
	Steps   Steps               // is told of each step of a site's loop
	Poll    time.Duration       // between two polls of a site while something is expected there; 0: 2 s
}

// Steps is told what the loops of sites do; functions that are nil are not called. They are called by the loops'
// goroutines, and must not wait.
type Steps struct {
	Began func(site corral.SiteID)
	Ended func(site corral.SiteID, took time.Duration, err error) // err is nil also if the world had changed meanwhile
}

// begin tells of a step that begins, and returns what tells of its end.
func (s Steps) begin(site corral.SiteID) (ended func(time.Duration, error)) {
	if s.Began != nil {
		s.Began(site)
	}
	return func(took time.Duration, err error) {
		if corral.KindOf(err) == corral.Conflict {
			err = nil // it decides again at once
		}
		if s.Ended != nil {
			s.Ended(site, took, err)
		}
	}
}

// usualTokens are good for a day in the queue, and for a clock, or a batch system, that is late by minutes.
var usualTokens = reconcile.Lifetimes{Queue: 24 * time.Hour, Renew: time.Hour, Margin: 10 * time.Minute}

// An Engine keeps the sites as they were asked to be.
type Engine struct {
	lg       *slog.Logger
	db       *store.DB
	clusters *admission.Clusters
	cfg      Config
	loading  sync.Mutex // held while a site's world is read: all the sites together have one cpu busy with it at most
}

// New returns an engine that works once Run is called.
func New(lg *slog.Logger, db *store.DB, clusters *admission.Clusters, cfg Config) *Engine {
	if cfg.Tokens == (reconcile.Lifetimes{}) {
		cfg.Tokens = usualTokens
	}
	return &Engine{lg: lg, db: db, clusters: clusters, cfg: cfg}
}

// Run serves all sites until ctx ends and returns when every site's goroutine is gone. Jobs at the
// sites go on: the next Run adopts them.
func (e *Engine) Run(ctx context.Context) error {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards serving
		serving = map[corral.SiteID]bool{}
	)
	defer wg.Wait()
	if err := e.cfg.Catalog.Register(ctx); err != nil {
		return err
	}
	for {
		changed := e.db.Changed(store.Subject{Object: corral.ObjectSite})
		sites, err := store.ReadWhole(ctx, e.db, (*store.WholeTx).SitesToServe) // which may still need something
		again := pollNothing
		if err != nil && ctx.Err() == nil {
			e.lg.Error("listing sites failed", "err", err)
			again = troubleMin
		}
		mu.Lock()
		for _, s := range sites {
			if serving[s.ID] {
				continue
			}
			serving[s.ID] = true
			wg.Go(func() {
				newSiteLoop(e, s).run(ctx)
				mu.Lock()
				defer mu.Unlock()
				delete(serving, s.ID)
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
