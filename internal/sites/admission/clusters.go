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
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/embedded/port"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
)

// Pools are the HTCondor pools of clusters of kind condor; corrald's are condorpool.Keepers.
type Pools interface {
	// Mint makes a token with which the workers of an attempt may join the cluster's pool, and notes it in the store
	// before it returns. It may end before lifetime is over, where somebody else decides about that. The error is
	// Forbidden if there will be none.
	Mint(
		ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration,
	) (secret string, ends time.Time, err error)

	// Workers returns the workers that the cluster's collector knew when it was last asked.
	Workers(cluster corral.ClusterID) []corral.Worker

	// Waiting returns what the jobs need that wait in the cluster's queue.
	Waiting(ctx context.Context, cluster corral.ClusterID) ([]matching.Class, error)

	// Queue returns the job queue of a READY cluster.
	Queue(cluster corral.Cluster) (run.Queue, error)
}

// An Address says where workers at a site dial in.
type Address interface {
	// For returns the addresses to try, in order, and the digest of the certificate that the worker
	// port shows, if one of them is a TLS address.
	For(site corral.Site) (addresses []string, certDigest string, err error)

	// Dial connects with the TLS worker port from here, for workers that come through a relay.
	Dial(ctx context.Context) (net.Conn, error)
}

// Clusters is what runs and glideins see of the personal clusters, of both kinds. It holds the
// dispatchers of the embedded clusters and the links of the pilots of all clusters, and is
// the gate of the worker port. Its methods may be called from several goroutines at once.
type Clusters struct {
	lg    *slog.Logger
	db    *store.DB
	cfg   dispatch.Config
	links *port.Links // of the pilots of all clusters
	pools Pools       // nil: there are none

	streams streamDoor // of pools
	key     Key        // of the tokens of this corrald; nil: it is not known

	mu sync.Mutex // guards following; it is not held while a dispatcher is asked, which may be about to notify

	dispatchers map[corral.ClusterID]*dispatch.Dispatcher
	changed     chan struct{} // closed and replaced when workers come or go
	misfits     misfits
}

// NewClusters returns the set of clusters, of which none is a pool of HTCondor's before UsePools. By the key with which
// the tokens of attempts are made, pilots are known as ours of which the store has no record; without one they are
// strangers. cfg.OnChange is taken over.
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

// UsePools says who runs the clusters of kind condor, before anything else is asked of c. Whoever it is calls
// Notify when workers come or go. If it is Streams, too, its clusters can have worker jobs.
func (c *Clusters) UsePools(p Pools) {
	c.pools = p
	c.streams.streams, _ = p.(Streams)
}

// Changed returns a channel that is closed when workers come or go next.
func (c *Clusters) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Notify wakes whoever waits for workers to come or go.
func (c *Clusters) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close ends all dispatchers and links; workers and pilots notice and try to come back. It holds no lock while it
// waits for them, since they may be about to notify.
func (c *Clusters) Close() {
	c.links.Close()
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.dispatchers))
	c.mu.Unlock()
	for _, d := range all {
		d.Close()
	}
}

// dispatcher returns the dispatcher of a cluster, which it makes if nothing has needed one so far.
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

// cluster returns the cluster with an id, which the caller has from what its owner asked for.
func cluster(ctx context.Context, db *store.DB, id corral.ClusterID) (corral.Cluster, error) {
	return store.ReadWhole(ctx, db, func(tx *store.WholeTx) (corral.Cluster, error) { return tx.Cluster(id) })
}

// Queue returns the job queue of a cluster for runs with these options, a NotFound or Conflict error if it may not take
// jobs.
func (c *Clusters) Queue(id corral.ClusterID, o corral.RunOptions) (run.Queue, error) {
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
	if d := c.existing(id); d != nil { // else no worker has dialled in yet
		workers = d.Workers()
	}
	if c.pools != nil { // a cluster has workers of one kind
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

// Waiting returns what the jobs need that wait in a cluster's queue and that no worker has.
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

// existing returns the dispatcher of a cluster, or nil if nothing has needed one so far.
func (c *Clusters) existing(id corral.ClusterID) *dispatch.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dispatchers[id]
}

// Registered returns the workers that are connected to the clusters of glideins now, by attempt.
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

// Mint makes a token for the workers of an attempt of an HTCondor cluster, as Pools does. Without pools the error is
// Unavailable.
func (c *Clusters) Mint(
	ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration,
) (secret string, ends time.Time, err error) {
	if c.pools == nil {
		return "", time.Time{}, corral.Errorf(corral.Unavailable, "this corrald runs no HTCondor pools")
	}
	return c.pools.Mint(ctx, cluster, attempt, lifetime)
}

// Drain asks the pilot and the workers of an attempt to finish what they run and leave, now or when they
// dial in next. The workers of an HTCondor pool are told by their pilot.
func (c *Clusters) Drain(cluster corral.ClusterID, attempt corral.JobID) {
	c.links.Ask(attempt, corral.AskDrain)
	if d := c.existing(cluster); d != nil {
		d.Ask(attempt, corral.AskDrain)
	}
	if s := c.streams.known(cluster); s != nil {
		s.Dispatcher().Ask(attempt, corral.AskDrain)
	}
}

// Ended says that nothing of the attempt with this tag runs any more: what its workers had is done again at once.
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

// Offer says what could take a task: the workers present, and those that glideins will bring.
func (c *Clusters) Offer(ctx context.Context, id corral.ClusterID) (execution.Offer, error) {
	now := time.Now() // once: of what is present and of what is to come
	var offer execution.Offer
	present := map[corral.JobID]int{} // :: attempt → cpus registered
	for _, w := range c.Workers(id) {
		offer.Capacities = append(offer.Capacities, execution.CapacityOf(w, now))
		if w.Draining || !w.Connected {
			continue
		}
		offer.CPUs += w.CPUs
		present[w.Attempt] += w.CPUs
	}
	if s := c.streams.known(id); s != nil { // what worker jobs have is the pool's, too: it is counted there
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
		return offer, fmt.Errorf("listing what is requested for cluster %d: %w", id, err)
	}
	for _, g := range glideins {
		if left, ok := attempt.ToCome(g, present, now); ok {
			offer.Capacities = append(offer.Capacities, execution.Offering(g.Host(), left))
		}
	}
	return offer, nil
}
