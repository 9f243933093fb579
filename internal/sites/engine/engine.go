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

// Config holds the engine's collaborators. All fields but Supply, Tokens, Steps and Poll are required.
type Config struct {
	Key     admission.Key       // makes the attempts' tokens
	Address admission.Address   // where workers connect
	Reach   *siteaccess.Reach   // the connections to sites
	Prober  *siteaccess.Prober  // the engine ends its probes at sites that are being left
	Catalog *delivery.Catalog   // the source of worker packages and pilot binaries
	Supply  delivery.Supply     // how packages get to sites
	Tokens  reconcile.Lifetimes // of tokens for HTCondor pools; zero: the default lifetimes
	Steps   Steps               // called at each step of a site's loop
	Poll    time.Duration       // interval of polls while a change is expected at a site; 0: 2 s
}

// Steps holds callbacks for the steps of the sites' loops; nil functions are not called. The loops' goroutines call
// them, so they must not block.
type Steps struct {
	Began func(site corral.SiteID)
	Ended func(site corral.SiteID, took time.Duration, err error) // err is also nil after a Conflict
}

// begin reports the beginning of a step and returns a function that reports its end.
func (s Steps) begin(site corral.SiteID) (ended func(time.Duration, error)) {
	if s.Began != nil {
		s.Began(site)
	}
	return func(took time.Duration, err error) {
		if corral.KindOf(err) == corral.Conflict {
			err = nil // the loop decides again at once
		}
		if s.Ended != nil {
			s.Ended(site, took, err)
		}
	}
}

// usualTokens are the default lifetimes: a day in the queue, with margins for clocks and batch systems that are minutes
// late.
var usualTokens = reconcile.Lifetimes{Queue: 24 * time.Hour, Renew: time.Hour, Margin: 10 * time.Minute}

// An Engine keeps the sites in their requested states.
type Engine struct {
	lg       *slog.Logger
	db       *store.DB
	clusters *admission.Clusters
	cfg      Config
	loading  sync.Mutex // held while a site's world is read: all sites together keep at most one CPU busy with that
}

// New returns an engine; Run starts it.
func New(lg *slog.Logger, db *store.DB, clusters *admission.Clusters, cfg Config) *Engine {
	if cfg.Tokens == (reconcile.Lifetimes{}) {
		cfg.Tokens = usualTokens
	}
	return &Engine{lg: lg, db: db, clusters: clusters, cfg: cfg}
}

// Run serves all sites until ctx ends and returns when every site's goroutine has ended. Jobs at the sites continue:
// the next Run adopts them.
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
		sites, err := store.ReadWhole(ctx, e.db, (*store.WholeTx).SitesToServe) // those that may still need work
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
