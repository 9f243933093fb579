package main

// A daemon is assembled before any of its parts runs: each part receives its dependencies when it is created, so parts
// are created in the order of their dependencies. Parts run concurrently until corrald must end. Then the API stops
// accepting requests, and answers the requests in progress. Only afterwards do the other parts end, so that no request
// finds a part missing.
//
// The database is opened first and closed last. Its lock ensures that this is the only corrald with the state, so all
// other writes to the state directory take place after the database has been opened.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/condor/condorpool"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/service/metrics"
	"github.com/corral-pilot/corral/internal/service/outage"
	"github.com/corral-pilot/corral/internal/service/owners"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/internal/service/server"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/engine"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/ensembles"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/internal/work/scaling"
	"github.com/corral-pilot/corral/packages"
)

// serve runs corrald until ctx ends. Its parts end in the reverse order of their dependencies: first the API, then the
// other parts, and last the database.
func serve(ctx context.Context, lg *slog.Logger, s settings) error {
	me, err := settle(s)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, lg, s.layout.Database())
	if err != nil {
		return err
	}
	defer db.Close()
	if s.central.listen != "" {
		db.Limit(s.central.limits.objects)
	}
	if err := os.WriteFile(s.layout.PID(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the pid file: %w", err)
	}
	defer os.Remove(s.layout.PID())

	audit, reopenAudit, err := openAudit(lg, s.central.audit)
	if err != nil {
		return err
	}
	db.OnAct(func(a store.Act) {
		audit.Info("act", "actor", a.Actor, "owner", a.Owner, "object", a.Object, "id", a.Of, "event", a.Event,
			"reason", a.Reason)
	})
	d, err := assemble(lg, audit, db, s, me)
	if err != nil {
		return err
	}
	defer d.clusters.Close()
	defer d.reach.Close()
	listener, err := port.ListenUnix(s.layout.Socket)
	if err != nil {
		return corral.ErrorAt(corral.KindOf(err), "--socket", "%w", err)
	}
	defer os.Remove(s.layout.Socket)
	where := personal.Whereabouts{PID: os.Getpid(), Socket: s.layout.Socket, Worker: s.layout.Worker}
	if err := where.Write(s.layout); err != nil {
		return err
	}
	defer os.Remove(s.layout.Whereabouts())
	front, err := d.openFront(ctx, lg, db, s.central)
	if err != nil {
		return err
	}
	if front != nil || s.central.audit != "" { // otherwise a hangup ends corrald, as it ends other programs
		defer heedHangups(ctx, lg, front, reopenAudit)()
	}
	lg.Info("corrald serves", "version", version.String(), "pid", os.Getpid(), "user", me, "socket", s.layout.Socket)
	defer lg.Info("corrald ends")
	return d.serve(ctx, listener, front)
}

// openDatabase opens the database, which includes a check, and logs the duration.
func openDatabase(ctx context.Context, lg *slog.Logger, path string) (*store.DB, error) {
	began := time.Now()
	db, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if db.Checked() {
		lg.Info("the database was checked and is intact", "database", path, "took", time.Since(began))
	} else {
		lg.Warn("the check of the database takes long and continues while corrald serves", "database", path)
	}
	return db, nil
}

// A daemon consists of corrald's parts.
type daemon struct {
	db       *store.DB
	clusters *admission.Clusters
	outages  *outage.Keeper
	engine   *engine.Engine
	runs     *run.Manager
	port     *workerPort
	reach    *siteaccess.Reach
	mirror   *mirrorPort
	pools    *condorpool.Keepers
	metrics  *metricsPort
	chores   map[string]chore // :: name used in errors
	api      *server.Server
}

// A chore runs until its context ends.
type chore func(context.Context) error

// choresOf returns the chores that process data of other parts: plans whose runs have ended or deviate from the
// forecast, workers for queues, and data that grows.
func choresOf(
	lg *slog.Logger, db *store.DB, s settings, runs *run.Manager, clusters *admission.Clusters,
) map[string]chore {
	return map[string]chore{
		"plans":     func(ctx context.Context) error { return provision.Keep(ctx, lg, db) },
		"revisions": provision.NewReviser(lg, db, runs, clusters, machineOf(s.cpus)).Run,
		"ensembles": (&ensembles.Keeper{Log: lg, DB: db, Runs: runs, Workers: clusters, Machine: machineOf(s.cpus),
			Shelf: ensembles.Shelf(s.layout.Ensembles())}).Run,
		"owners":    (&owners.Keeper{Log: lg, DB: db, Runs: runs, Keys: s.wallet()}).Run,
		"scales":    func(ctx context.Context) error { return scaling.Keep(ctx, lg, db, clusters, machineOf(s.cpus)) },
		"retention": func(ctx context.Context) error { return retain(ctx, lg, db, s) },
	}
}

// assemble creates the parts without starting them, in the order of their dependencies. Keys come first, because
// without them no package can be signed and no pilot admitted.
func assemble(lg, audit *slog.Logger, db *store.DB, s settings, user string) (*daemon, error) {
	key, err := admission.LoadKey(s.layout.Key())
	if err != nil {
		return nil, err
	}
	stock, err := openStock(s)
	if err != nil {
		return nil, err
	}
	clusters := admission.NewClusters(lg, db, key, dispatch.Config{Lease: s.lease.task})
	port, err := newWorkerPort(lg, clusters, s)
	if err != nil {
		return nil, err
	}
	mirror, err := openMirror(lg, s, stock.Mirror())
	if err != nil {
		return nil, err
	}
	s.supply.ServedAt = mirror.url(s.mirror.advertise)
	way := newReach(lg, s, key, port)
	prober := siteaccess.NewProber(lg, db, way, port)
	catalog := delivery.NewCatalog(lg, db, stock, schemes(lg))
	condors := openPools(lg, db, s, clusters, catalog)
	runs := run.NewManager(lg, db, clusters, s.layout.Runs())
	seen, err := openMetrics(lg, db, s, metrics.Sources{Workers: clusters.Workers, Credentials: way.Credentials.Of})
	if err != nil {
		return nil, err
	}
	outages := outage.New(lg, db, clusters)
	return &daemon{
		db:       db,
		clusters: clusters,
		outages:  outages,
		engine: engine.New(lg, db, clusters, engine.Config{
			Key: key, Address: port, Reach: way, Prober: prober, Catalog: catalog, Supply: s.supply,
			Poll:  s.upkeep.poll,
			Steps: engine.Steps{Began: seen.Stepping, Ended: seen.Stepped},
		}),
		runs: runs, port: port, reach: way, mirror: mirror, pools: condors, metrics: seen,
		chores: choresOf(lg, db, s, runs, clusters),
		api: server.New(lg, db, server.Config{
			Version:       version.String(),
			User:          user,
			Machine:       machineOf(s.cpus),
			Folders:       server.Folders{Sites: s.layout.Sites(), Ensembles: ensembles.Shelf(s.layout.Ensembles())},
			Runs:          runs,
			Workers:       server.Workers{Clusters: clusters, Outages: outages},
			Catalog:       catalog,
			Reach:         way,
			Prober:        prober,
			Pools:         condors,
			Metrics:       seen.Metrics,
			CondorRefused: condorRefused(),
			Keys:          s.wallet(),
			Audit:         audit, Bounds: s.central.limits.bounds,
		}),
	}, nil
}

// newReach returns an object that provides access to sites, and makes the worker port use it to determine this
// machine's address on the route to a site.
func newReach(lg *slog.Logger, s settings, key admission.Key, port *workerPort) *siteaccess.Reach {
	way := siteaccess.New(backends(lg, s.wallet(), s.central.limits.bounds.Visits.Allowed), key.Owner())
	port.local = way.LocalIP
	return way
}

// openStock opens the store of packages for sites, which includes this corrald's own pilot.
func openStock(s settings) (*delivery.Depot, error) {
	signer, err := packages.LoadSigner(s.layout.PackageKey())
	if err != nil {
		return nil, err
	}
	stock := delivery.OpenDepot(s.layout.Cache, signer, s.trusted...)
	if err := stock.Sweep(); err != nil {
		return nil, err
	}
	return stock, stock.AddPilot(s.binary, thisMachine())
}

// serve runs the parts until ctx ends or one of them fails. The API ends first, on ctx; the parts have their own
// context, so that requests in progress can still use them.
func (d *daemon) serve(ctx context.Context, socket net.Listener, others *front) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	inner, cancelInner := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelInner()

	var parts sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(inner); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	parts.Go(func() { // report this error before the failures of writers
		if err := d.db.Guard(inner); err != nil {
			cancel(err)
			_ = d.db.Seal() // the error for a missing file adds nothing
		}
	})
	part("worker port", d.port.serve)
	part("mirror", d.mirror.serve)
	part("metrics", d.metrics.serve)
	part("pools", d.pools.Run)
	part("engine", d.engine.Run)
	part("runs", d.runs.Run)
	part("outages", d.outages.Run)
	if others != nil {
		d.metrics.Shows(others.certificates.Until)
		part("certificate", func(ctx context.Context) error {
			others.certificates.Watch(ctx)
			return nil
		})
	}
	for name, run := range d.chores {
		part(name, run)
	}
	err := d.answer(ctx, socket, others)
	cancelInner()
	parts.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
