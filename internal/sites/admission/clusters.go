package admission

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
)

// Pools are the HTCondor pools of clusters of kind condor; in corrald they are condorpool.Keepers.
type Pools interface {
	// Mint creates a token with which an attempt's workers may join the cluster's pool, and records it in the store
	// before it returns. If another party controls the lifetime, the token may expire earlier. The error is Forbidden
	// if the pool will never issue one.
	Mint(
		ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration,
	) (secret string, ends time.Time, err error)

	// Workers returns the workers known to the cluster's collector when it was last queried.
	Workers(cluster corral.ClusterID) []corral.Worker

	// Waiting returns the requirements of the jobs in the cluster's queue.
	Waiting(ctx context.Context, cluster corral.ClusterID) ([]matching.Class, error)

	// Queue returns the job queue of a READY cluster.
	Queue(cluster corral.Cluster) (run.Dispatcher, error)
}

// An Address determines where workers at a site connect.
type Address interface {
	// For returns the addresses to try, in order, and the digest of the worker port's certificate if one of them is a
	// TLS address.
	For(site corral.Site) (addresses []string, certDigest string, err error)

	// Dial connects to the TLS worker port from this process, for workers that come through a relay.
	Dial(ctx context.Context) (net.Conn, error)
}

// Clusters gives runs and glideins access to the personal clusters of both kinds. It holds the dispatchers of the
// embedded clusters and the links of the pilots of all clusters, and is the gate of the worker port. Its methods may
// be called concurrently.
type Clusters struct {
	lg    *slog.Logger
	db    *store.DB
	cfg   dispatch.Config
	links *port.Links // of the pilots of all clusters
	pools Pools       // nil: none

	streams streamDoor // for worker jobs
	key     Key        // of this corrald's tokens; nil: unknown

	mu sync.Mutex // guards the fields below; it is not held during calls to a dispatcher, which may be about to notify

	dispatchers map[corral.ClusterID]*dispatch.Dispatcher
	changed     chan struct{} // closed and replaced when workers register or leave
	misfits     misfits
}

// NewClusters returns the set of clusters. HTCondor pools are added by UsePools. With the key that makes the
// attempts' tokens, pilots that the store has no record of are recognized as this corrald's; without a key they are
// treated as strangers. NewClusters sets cfg.OnChange.
func NewClusters(lg *slog.Logger, db *store.DB, key Key, cfg dispatch.Config) *Clusters {
	c := &Clusters{
		key:         key,
		lg:          lg,
		db:          db,
		links:       port.NewLinks(cfg.Terms()),
		dispatchers: map[corral.ClusterID]*dispatch.Dispatcher{},
		changed:     make(chan struct{}),
		misfits:     misfits{known: map[string]bool{}},
	}
	cfg.OnChange, cfg.Asked = c.Notify, c.links.Asked
	c.cfg = cfg
	return c
}

// UsePools sets the manager of the clusters of kind condor. It must be called before any other method of c. The
// manager must call Notify when workers register or leave. If it also implements Streams, its clusters support worker
// jobs.
func (c *Clusters) UsePools(p Pools) {
	c.pools = p
	c.streams.streams, _ = p.(Streams)
}

// Changed returns a channel that is closed when workers next register or leave.
func (c *Clusters) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Notify wakes the callers that wait for workers to register or leave.
func (c *Clusters) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close closes all dispatchers and links; workers and pilots notice and try to reconnect. It holds no lock while it
// waits for the dispatchers, because they may be about to call Notify.
func (c *Clusters) Close() {
	c.links.Close()
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.dispatchers))
	c.mu.Unlock()
	for _, d := range all {
		d.Close()
	}
}

// dispatcher returns a cluster's dispatcher and creates it when it is first needed.
func (c *Clusters) dispatcher(id corral.ClusterID) *dispatch.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dispatchers[id]
	if d == nil {
		d = dispatch.New(c.lg.With("cluster", id), c.cfg)
		c.dispatchers[id] = d
	}
	return d
}

// cluster returns the cluster with an id that comes from one of its owner's requests.
func cluster(ctx context.Context, db *store.DB, id corral.ClusterID) (corral.Cluster, error) {
	return store.ReadWhole(ctx, db, func(tx *store.WholeTx) (corral.Cluster, error) { return tx.Cluster(id) })
}

// Queue returns a cluster's job queue for runs with these options. It returns a NotFound or Conflict error if the
// cluster cannot accept jobs.
func (c *Clusters) Queue(id corral.ClusterID, o corral.RunOptions) (run.Dispatcher, error) {
	cluster, err := cluster(context.Background(), c.db, id)
	if err != nil {
		return nil, err
	}
	if cluster.State != corral.ClusterReady {
		return nil, corral.ErrorAt(corral.Conflict, "cluster "+cluster.Name, "%s", cluster.Idle())
	}
	if cluster.Kind == corral.Condor {
		if c.pools == nil {
			return nil, corral.ErrorAt(corral.Unavailable, "cluster "+cluster.Name,
				"this corrald runs no HTCondor pools")
		}
		if o.Stream {
			return c.streams.queue(cluster)
		}
		return c.pools.Queue(cluster)
	}
	return c.dispatcher(id), nil
}

// Workers returns the workers registered in a cluster, by id.
func (c *Clusters) Workers(id corral.ClusterID) (workers []corral.Worker) {
	if d := c.existing(id); d != nil { // otherwise no worker has connected yet
		workers = d.Workers()
	}
	if c.pools != nil { // all workers of a cluster are of the same kind
		workers = append(workers, c.pools.Workers(id)...)
	}
	if s := c.streams.known(id); s != nil {
		regard(workers, s.Dispatcher().Workers())
	}
	for i := range workers {
		workers[i].Cluster = id
	}
	return workers
}

// Waiting returns the requirements of the jobs that wait in a cluster's queue and are not assigned to a worker.
func (c *Clusters) Waiting(ctx context.Context, id corral.ClusterID) ([]matching.Class, error) {
	cluster, err := cluster(ctx, c.db, id)
	if err != nil {
		return nil, err
	}
	if cluster.Kind == corral.Condor {
		if c.pools == nil {
			return nil, corral.Errorf(corral.Unavailable, "this corrald runs no HTCondor pools")
		}
		waiting, err := c.pools.Waiting(ctx, id)
		if s := c.streams.known(id); s != nil && err == nil {
			streamed, _ := s.Dispatcher().Load()
			waiting = append(streamed, waiting...)
		}
		return waiting, err
	}
	if d := c.existing(id); d != nil {
		waiting, _ := d.Load()
		return waiting, nil
	}
	return nil, nil
}

// existing returns a cluster's dispatcher, or nil if it has not been needed so far.
func (c *Clusters) existing(id corral.ClusterID) *dispatch.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dispatchers[id]
}

// Registered returns the workers that are now connected to the clusters of glideins, by attempt.
func (c *Clusters) Registered(glideins []corral.Glidein) map[corral.JobID][]corral.Worker {
	workers := map[corral.JobID][]corral.Worker{}
	seen := map[corral.ClusterID]bool{}
	for _, g := range glideins {
		if seen[g.Cluster] {
			continue
		}
		seen[g.Cluster] = true
		for _, w := range c.Workers(g.Cluster) {
			if w.Connected {
				workers[w.Attempt] = append(workers[w.Attempt], w)
			}
		}
	}
	return workers
}

// Mint creates a token for the workers of an attempt of an HTCondor cluster, like Pools.Mint. Without pools the error
// is Unavailable.
func (c *Clusters) Mint(
	ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration,
) (secret string, ends time.Time, err error) {
	if c.pools == nil {
		return "", time.Time{}, corral.Errorf(corral.Unavailable, "this corrald runs no HTCondor pools")
	}
	return c.pools.Mint(ctx, cluster, attempt, lifetime)
}

// Drain asks an attempt's pilot and workers to finish their tasks and leave, now or when they next connect. Workers
// of an HTCondor pool are drained by their pilot.
func (c *Clusters) Drain(cluster corral.ClusterID, attempt corral.JobID) {
	c.links.Ask(attempt, corral.AskDrain)
	if d := c.existing(cluster); d != nil {
		d.Ask(attempt, corral.AskDrain)
	}
	if s := c.streams.known(cluster); s != nil {
		s.Dispatcher().Ask(attempt, corral.AskDrain)
	}
}

// Ended reports that no process of the attempt with this tag is running any more: its workers' tasks are rescheduled
// at once.
func (c *Clusters) Ended(tag string) {
	c.misfits.forget(tag)
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.dispatchers))
	c.mu.Unlock()
	for _, d := range all {
		d.Ended(tag)
	}
	v, err := c.visitor(context.Background(), tag)
	if s := c.streams.known(v.cluster.ID); err == nil && s != nil {
		s.Dispatcher().Ended(tag)
	}
}

// Offer returns the resources that could run a task: the connected workers and those that glideins will bring.
func (c *Clusters) Offer(ctx context.Context, id corral.ClusterID) (execution.Offer, error) {
	now := time.Now() // read once, for both present and future workers
	var offer execution.Offer
	present := map[corral.JobID]int{} // :: attempt → registered CPUs
	for _, w := range c.Workers(id) {
		offer.Capacities = append(offer.Capacities, execution.CapacityOf(w, now))
		if w.Draining || !w.Connected {
			continue
		}
		offer.CPUs += w.CPUs
		present[w.Attempt] += w.CPUs
	}
	if s := c.streams.known(id); s != nil { // the CPUs of worker jobs belong to the pool and are counted there
		for _, w := range s.Dispatcher().Workers() {
			offer.Capacities = append(offer.Capacities, execution.CapacityOf(w, now))
		}
	}
	glideins, err := store.ReadWhole(ctx, c.db, func(tx *store.WholeTx) ([]corral.Glidein, error) {
		cluster, err := tx.Cluster(id)
		if err != nil {
			return nil, err
		}
		return tx.Owner(cluster.Owner).Glideins(store.GlideinFilter{Cluster: id, Live: true, InBrief: true})
	})
	if err != nil {
		return offer, fmt.Errorf("listing the glideins of cluster %d: %w", id, err)
	}
	for _, g := range glideins {
		if left, ok := attempt.ToCome(&g, present, now); ok {
			offer.Capacities = append(offer.Capacities, execution.Offering(g.Host(), left, g.Speed))
		}
	}
	return offer, nil
}
