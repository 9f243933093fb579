package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/service/events"
	"github.com/corral-pilot/corral/internal/service/login"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

// A Server is the http.Handler of corrald's API.
type Server struct {
	*rest.Router
	lg     *slog.Logger
	routes []rest.Route
	logins *login.Sessions
	stop   context.CancelCauseFunc // ends the adapter's life
}

// Parameters that many routes have.
var (
	listing = []string{"all", "owner", "after", "limit"}
	paging  = []string{"after", "limit"}
	waiting = []string{"wait", "timeout_s"}
)

// New returns a server that answers from db.
func New(lg *slog.Logger, db *store.DB, cfg Config) *Server {
	life, stop := context.WithCancelCause(context.Background())
	a := &rest.Adapter{Log: lg, DB: db, Life: life, Registered: cfg.Clusters.Changed}
	s := &Server{lg: lg, logins: &login.Sessions{}, stop: stop}
	goes := newVisits(cfg.Bounds.Visits)
	runs, sites := newRuns(a, cfg), newSites(a, cfg, goes)
	s.routes = slices.Concat(
		newHealth(a, cfg).routes(),
		sites.routes(),
		newOrphans(cfg.Reach, sites.Resource).Routes(),
		newBacklogs(cfg.Reach, sites.Resource).routes(),
		newLogins(a, cfg, s.logins, goes).routes(),
		newGlideins(a, cfg).routes(),
		newClusters(a, cfg).routes(),
		newPackages(a, cfg).routes(),
		newMirrors(a, cfg).routes(),
		runs.routes(),
		newTasks(cfg.Runs, runs.Resource).routes(),
		newPlans(a, cfg).routes(),
		newProfiles(a).routes(),
		newScales(a, cfg).routes(),
		newEnsembles(a, ensembleConfig{Runs: cfg.Runs, Shelf: cfg.Folders.Ensembles, Machine: cfg.Machine,
			Where: whereOf, CanJoin: newGlideins(a, cfg).canJoin, Ahead: clusterAhead(a)}).routes(),
		usageRoutes(a),
		events.NewHub(lg, db).Routes(a),
		newTokens(a, cfg.Keys).routes(),
		newOwners(a).routes(),
	)
	s.Router = rest.NewRouter(lg, cfg.Bounds.Pace, s.routes)
	s.Answered = cfg.Metrics.Answered
	if cfg.Audit != nil {
		s.Audit = cfg.Audit
	}
	return s
}

// Stop ends all waits with an Unavailable error and makes /readyz report it. Later requests are still answered.
func (s *Server) Stop() { s.stop(rest.ErrStopping) }

// Limits of a connection.
const (
	headerTimeout = 10 * time.Second
	maxHeader     = 64 << 10 // bytes: 64 labels in a query take 20 KiB
	idleTimeout   = 2 * time.Minute
	stopGrace     = 10 * time.Second // for requests that are being answered when corrald stops
)

// Serve is ServeBy on l, a socket that only corrald's own user can open.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return s.ServeBy(ctx, l, s) }

// ServeBy answers on l through h until ctx ends; h passes requests on to s. Then it first ends the waits, which would
// keep their requests open for up to a minute, and only then shuts down: that is why a Server has its own Stop. It
// lets current requests finish, returns when all its goroutines have ended, and closes l.
func (s *Server) ServeBy(ctx context.Context, l net.Listener, h http.Handler) error {
	hs := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.lg.Handler(), slog.LevelDebug), // errors of peers
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.Stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		err := hs.Shutdown(grace)
		if err != nil {
			err = errors.Join(err, hs.Close())
		}
		stopped <- err
	})
	err := hs.Serve(l)
	defer s.logins.Wait()
	defer s.Stop() // in any case: a login without answers takes minutes

	if stop() { // the server ended for a reason other than ctx
		return err
	}
	return <-stopped
}
