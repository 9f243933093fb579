package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
)

// Workers knows who is registered in the clusters now; the engine's Clusters is one.
type Workers interface {
	// Workers returns the workers of a cluster, in the order of their ids.
	Workers(cluster corral.ClusterID) []corral.Worker

	// Changed returns a channel that is closed when a worker comes or goes next. Take it before
	// calling Workers.
	Changed() <-chan struct{}
}

// A Catalog has the archives of worker packages; the engine's Catalog is one.
type Catalog interface {
	// Import brings the archive at source into corrald's mirror and returns its description, once it has
	// checked the signature: the content of a signature file, nil for the one beside the archive. With
	// sign corrald vouches for a local archive itself.
	Import(ctx context.Context, source string, signature []byte, sign bool) (corral.Package, error)

	// Verify reports why the package is not what it should be.
	Verify(ctx context.Context, p corral.Package) error

	// Drop removes the archive from corrald's mirror.
	Drop(p corral.Package) error

	// Check returns the packages in a mirror's index that a trusted key signed.
	Check(ctx context.Context, m corral.Mirror) ([]corral.Package, error)
}

// Releases finds HTCondor's releases.
type Releases interface {
	// Release returns the folder and the version of HTCondor that ref names: a package's full name, an
	// absolute folder, or nothing for the newest there is. An Unsatisfiable error says what there is to do.
	Release(ctx context.Context, ref string) (dir, version string, err error)
}

// Pools runs the HTCondor pools of clusters of kind condor, as their rows say.
type Pools interface {
	// PutToken keeps the text of the token by which an attached pool lets its user in, in the place of one
	// that was there, for as long as the cluster is not DELETED. It is called before the cluster's row is
	// committed: a token whose cluster does not exist means nothing.
	PutToken(cluster corral.ClusterID, secret string) error

	// Env returns what HTCondor's commands and corral need in their environment to use the cluster, as
	// NAME=value. PATH has only the folders that come before the user's own.
	Env(ctx context.Context, cluster corral.ClusterID) ([]string, error)
}

// A Shape is what a machine has.
type Shape struct {
	CPUs      int
	MemoryMiB int
}

// Config says what the server needs to know beside the store. All fields but CondorRefused, Facts and BodyTimeout are
// required.
type Config struct {
	Version  string // of corrald, for /healthz
	User     string // as whom corrald runs, for /healthz
	Machine  Shape  // of this machine, which is what the batch system fork gives out
	Catalog  Catalog
	Releases Releases
	Pools    Pools

	// BodyTimeout is how long a request's body may take, and a second more for each MiB that it is to have; 0: 30 s.
	BodyTimeout time.Duration

	// CondorRefused is why this corrald has no clusters of kind condor, nil if it may have them.
	CondorRefused error

	// SiteRoot proposes a directory for a site on this machine that was created without one.
	SiteRoot func(name string) string

	// ExpandRoot returns the site's root with the variable in front of it as a login at the site has it.
	ExpandRoot func(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error)

	// CheckSite reports why a site cannot be used: it is not reached, its root is not writable, or holds what is
	// not Corral's, or its batch system refuses its options.
	// It must leave nothing at the site.
	CheckSite func(ctx context.Context, site corral.Site, acceptHostKey bool) error

	// Facts says what the batch system of a site has, which need not be recorded yet; nil: sites are created without.
	Facts func(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// Login logs in at a site, or at a contact if the site has no id yet, with the answers that ask gets, and holds the
	// connection.
	Login func(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error

	// Survey finds out what a site is like, at a READY one also what its nodes are like, and records it.
	Survey func(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// ProbeNetwork measures how workers at a READY site would be reached by the pool of a cluster of kind condor.
	// It must leave nothing at the site.
	ProbeNetwork func(ctx context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error)

	// CheckGlidein reports why no worker of a cluster of kind condor can run at the site.
	CheckGlidein func(ctx context.Context, site corral.Site, cluster corral.Cluster) error

	// JobFile returns a file of the job's directory at its site, fs.ErrNotExist if there is none.
	JobFile func(ctx context.Context, job corral.Job, name string) ([]byte, error)
}

// A Server is the http.Handler of corrald's API.
type Server struct {
	lg      *slog.Logger
	db      *store.DB
	runs    *run.Manager
	workers Workers
	cfg     Config
	echo    *echo.Echo
	logins  logins

	stopOnce sync.Once
	stopping chan struct{} // closed when waits are to end
}

// New returns a server that answers from db.
func New(lg *slog.Logger, db *store.DB, runs *run.Manager, workers Workers, cfg Config) *Server {
	s := &Server{lg: lg, db: db, runs: runs, workers: workers, cfg: cfg, stopping: make(chan struct{})}
	s.echo = echo.New()
	s.echo.HTTPErrorHandler = s.writeProblem
	s.echo.Use(s.observe)
	s.routes()
	return s
}

func (s *Server) routes() {
	e := s.echo
	e.GET("/healthz", s.healthz)
	e.GET("/readyz", s.readyz)
	e.GET("/openapi.yaml", s.openapi)

	v1 := e.Group("/v1")
	s.siteRoutes(v1)

	v1.GET("/glideins", s.listGlideins)
	v1.POST("/glideins", s.createGlidein)
	v1.GET("/glideins/:id", s.getGlidein)
	v1.DELETE("/glideins/:id", s.removeGlidein)
	v1.GET("/glideins/:id/history", s.glideinHistory)
	v1.GET("/glideins/:id/timeline", s.glideinTimeline)
	v1.GET("/glideins/:id/log", s.glideinLog)

	v1.GET("/clusters", s.listClusters)
	v1.POST("/clusters", s.createCluster)
	v1.GET("/clusters/:cluster", s.getCluster)
	v1.DELETE("/clusters/:cluster", s.removeCluster)
	v1.POST("/clusters/:cluster/start", s.startCluster)
	v1.POST("/clusters/:cluster/stop", s.stopCluster)
	v1.GET("/clusters/:cluster/env", s.clusterEnv)
	v1.GET("/clusters/:cluster/history", s.clusterHistory)
	v1.GET("/clusters/:cluster/workers", s.clusterWorkers)

	v1.GET("/packages", s.listPackages)
	v1.POST("/packages", s.importPackage)
	v1.GET("/packages/:package", s.getPackage)
	v1.DELETE("/packages/:package", s.removePackage)
	v1.POST("/packages/:package/verify", s.verifyPackage)
	v1.GET("/packages/:package/history", s.packageHistory)

	v1.GET("/mirrors", s.listMirrors)
	v1.POST("/mirrors", s.addMirror)
	v1.GET("/mirrors/:mirror", s.getMirror)
	v1.DELETE("/mirrors/:mirror", s.removeMirror)
	v1.POST("/mirrors/:mirror/check", s.checkMirror)
	v1.GET("/mirrors/:mirror/history", s.mirrorHistory)

	v1.GET("/runs", s.listRuns)
	v1.POST("/runs", s.createRun)
	v1.GET("/runs/:id", s.getRun)
	v1.DELETE("/runs/:id", s.removeRun)
	v1.POST("/runs/:id/cancel", s.cancelRun)
	v1.POST("/runs/:id/resume", s.resumeRun)
	v1.GET("/runs/:id/history", s.runHistory)
	v1.GET("/runs/:id/tasks", s.listTasks)
	v1.GET("/runs/:id/tasks/:task/log", s.taskLog)
}

func (s *Server) siteRoutes(v1 *echo.Group) {
	v1.GET("/sites", s.listSites)
	v1.POST("/sites", s.createSite)
	v1.GET("/sites/:site", s.getSite)
	v1.PATCH("/sites/:site", s.setSite)
	v1.DELETE("/sites/:site", s.removeSite)
	v1.POST("/sites/:site/probe", s.probeSite)
	v1.POST("/sites/:site/forgive", s.forgiveNodes)
	v1.GET("/sites/:site/history", s.siteHistory)
	v1.GET("/sites/:site/timeline", s.siteTimeline)
	v1.GET("/sites/:site/waits", s.siteWaits)
	v1.POST("/logins", s.login)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bound(w, r, s.cfg.BodyTimeout)
	s.echo.ServeHTTP(w, r)
}

// Stop ends all waits, with an Unavailable error, and makes /readyz say so. What is asked from then on
// is still answered.
func (s *Server) Stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// errStopping is what those are told that corrald no longer waits for, or works for.
var errStopping = corral.Errorf(corral.Unavailable, "corrald is stopping")

// untilStop does what may take longer than corrald's end: when corrald stops, work's context ends, and the error is
// errStopping.
func (s *Server) untilStop(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.stopping:
			cancel(errStopping)
		case <-over:
		}
	})
	err := work(ctx)
	close(over)
	watch.Wait()
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		err = errStopping
	}
	cancel(nil)
	return err
}

// Bounds of a connection.
const (
	headerTimeout = 10 * time.Second
	maxHeader     = 64 << 10 // bytes: 64 labels in a query are 20 KiB
	idleTimeout   = 2 * time.Minute
	stopGrace     = 10 * time.Second // for requests that are being answered when corrald stops
)

// Serve answers on l until ctx ends, lets the requests that it is answering finish, and returns when
// no goroutine of it is left. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.lg.Handler(), slog.LevelDebug), // what a peer did wrong
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
	defer s.logins.running.Wait()
	defer s.Stop() // whatever ended it: a login without answers takes minutes

	if stop() { // it was not ctx that ended it
		return err
	}
	return <-stopped
}
