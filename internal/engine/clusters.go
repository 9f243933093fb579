package engine

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/embedded/port"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
)

// Pools are the HTCondor pools of clusters of kind condor.
type Pools interface {
	// Mint makes a token with which the workers of an attempt may join the cluster's pool, and notes it in the store
	// before it returns. It may end before lifetime is over, where somebody else decides about that. The error is
	// Forbidden if there will be none.
	Mint(ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration) (secret string, ends time.Time, err error)

	// Workers returns the workers that the cluster's collector knew when it was last asked.
	Workers(cluster corral.ClusterID) []corral.Worker

	// Queue returns the job queue of a READY cluster.
	Queue(cluster corral.Cluster) (run.Queue, error)
}

// Clusters is what runs and glideins see of the personal clusters, of both kinds. It holds the
// dispatchers of the embedded clusters and the links of the pilots of all clusters, and is
// the gate of the worker port: who may come in is decided here, from what is recorded.
type Clusters struct {
	lg    *slog.Logger
	db    *store.DB
	cfg   dispatch.Config
	links *port.Links // of the pilots of all clusters
	pools Pools       // nil: there are none

	mu          sync.Mutex // guards following
	dispatchers map[corral.ClusterID]*dispatch.Dispatcher
	changed     chan struct{} // closed and replaced when workers come or go
}

// NewClusters returns the set of clusters, of which none is a pool of HTCondor's before UsePools;
// cfg.OnChange is taken over.
func NewClusters(lg *slog.Logger, db *store.DB, cfg dispatch.Config) *Clusters {
	c := &Clusters{
		lg:          lg,
		db:          db,
		links:       port.NewLinks(cfg.Terms()),
		dispatchers: map[corral.ClusterID]*dispatch.Dispatcher{},
		changed:     make(chan struct{}),
	}
	cfg.OnChange, cfg.Asked = c.Notify, c.links.Asked
	c.cfg = cfg
	return c
}

// UsePools says who runs the clusters of kind condor, before anything else is asked of c. Whoever it is calls
// Notify when workers come or go.
func (c *Clusters) UsePools(p Pools) { c.pools = p }

// Changed returns a channel that is closed when workers come or go next.
func (c *Clusters) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Notify wakes who waits for workers to come or go.
func (c *Clusters) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close ends all dispatchers and links; workers and pilots notice and try to come back. It holds no lock while it waits for
// them, since they may be about to notify.
func (c *Clusters) Close() {
	c.links.Close()
	for _, d := range c.all() {
		d.Close()
	}
}

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

// Queue returns the job queue of a cluster, a NotFound or Conflict error if it may not take jobs.
func (c *Clusters) Queue(id corral.ClusterID) (run.Queue, error) {
	var cluster corral.Cluster
	err := c.db.View(context.Background(), func(tx *store.Tx) (err error) {
		cluster, err = tx.Cluster(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if cluster.State != corral.ClusterReady {
		return nil, corral.ErrorAt(corral.Conflict, "cluster "+cluster.Name, "%s", cluster.Idle())
	}
	if cluster.Kind == corral.Condor {
		if c.pools == nil {
			return nil, corral.ErrorAt(corral.Unavailable, "cluster "+cluster.Name, "this corrald runs no HTCondor pools")
		}
		return c.pools.Queue(cluster)
	}
	return c.dispatcher(id), nil
}

// Workers returns the workers registered in a cluster, by id.
func (c *Clusters) Workers(id corral.ClusterID) []corral.Worker {
	workers := c.dispatched(id)
	if c.pools != nil { // a cluster has workers of one kind
		workers = append(workers, c.pools.Workers(id)...)
	}
	for i := range workers {
		workers[i].Cluster = id
	}
	return workers
}

// dispatched returns the workers that take their tasks from corrald.
func (c *Clusters) dispatched(id corral.ClusterID) []corral.Worker {
	if d := c.existing(id); d != nil {
		return d.Workers()
	}
	return nil // no worker has dialled in yet
}

// existing returns the dispatcher of a cluster, or nil if nothing has needed one so far.
func (c *Clusters) existing(id corral.ClusterID) *dispatch.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dispatchers[id]
}

// registered returns the workers of each attempt that are in the clusters of glideins now.
func (c *Clusters) registered(glideins []corral.Glidein) map[corral.JobID][]corral.Worker {
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

// mint makes a token for the workers of an attempt of an HTCondor cluster.
func (c *Clusters) mint(ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration) (secret string, ends time.Time, err error) {
	if c.pools == nil {
		return "", time.Time{}, corral.Errorf(corral.Unavailable, "this corrald runs no HTCondor pools")
	}
	return c.pools.Mint(ctx, cluster, attempt, lifetime)
}

// drain asks the pilot and the workers of an attempt to finish what they run and leave, now or when they
// dial in next. The workers of an HTCondor pool are told by their pilot.
func (c *Clusters) drain(cluster corral.ClusterID, attempt corral.JobID) {
	c.links.Ask(attempt, corral.AskDrain)
	if d := c.existing(cluster); d != nil {
		d.Ask(attempt, corral.AskDrain)
	}
}

func (c *Clusters) all() []*dispatch.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*dispatch.Dispatcher, 0, len(c.dispatchers))
	for _, d := range c.dispatchers {
		all = append(all, d)
	}
	return all
}

// Admit implements port.Gate: the token must be that of the attempt that is named, not expired, and
// the attempt alive; a worker must belong to the pilot that holds the attempt's lease, and to a cluster
// that is embedded. Pilots of all clusters come in, to be told to drain and to tell what they do.
func (c *Clusters) Admit(ctx context.Context, cred port.Credentials) (port.Admission, error) {
	var (
		job     corral.Job
		g       corral.Glidein
		cluster corral.Cluster
		now     time.Time
	)
	err := c.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		if job, err = tx.JobTagged(cred.Tag); err != nil {
			return err
		}
		if g, err = tx.GlideinInBrief(job.Glidein); err != nil {
			return err
		}
		cluster, err = tx.Cluster(g.Cluster)
		return err
	})
	if corral.KindOf(err) == corral.NotFound {
		return port.Admission{}, corral.ErrorAt(corral.Unauthenticated, "attempt "+cred.Tag, "is not known here")
	}
	if err != nil {
		return port.Admission{}, err
	}
	if err := mayEnter(job, cred, now); err != nil {
		return port.Admission{}, err
	}
	in := port.Admission{Attempt: job.ID, Hosts: g.Hosts, Glidein: g.ID, Cluster: g.Cluster, Links: c.links}
	switch {
	case cluster.Kind != corral.Condor:
		in.Dispatcher = c.dispatcher(g.Cluster)
	case cred.Role != wire.RolePilot:
		return port.Admission{}, corral.ErrorAt(corral.Forbidden, "attempt "+cred.Tag, "its workers join the HTCondor pool of cluster %s, not corrald", cluster.Name)
	}
	return in, nil
}

// mayEnter is the decision of Admit.
func mayEnter(job corral.Job, cred port.Credentials, now time.Time) error {
	place := "attempt " + job.Tag
	switch {
	case subtle.ConstantTimeCompare([]byte(job.TokenDigest), []byte(cred.TokenDigest)) != 1:
		return corral.ErrorAt(corral.Unauthenticated, place, "the token is not this attempt's")
	case now.After(job.TokenEndsAt):
		return corral.ErrorAt(corral.Unauthenticated, place, "the token expired at %s", job.TokenEndsAt.Format(time.RFC3339))
	case !job.Live():
		return corral.ErrorAt(corral.Forbidden, place, "ended as %s", job.Outcome)
	case cred.Role != wire.RolePilot && (job.LeaseHolder == "" || cred.Holder != job.LeaseHolder):
		return corral.ErrorAt(corral.Forbidden, place, "its lease is not held by this worker's pilot")
	}
	return nil
}

// Lease implements port.Gate: the first holder gets the attempt for good.
func (c *Clusters) Lease(ctx context.Context, attempt corral.JobID, holder string) error {
	return c.db.Write(ctx, Actor, func(tx *store.Tx) error {
		_, err := tx.LeaseJob(attempt, holder)
		return err
	})
}

// LoseHost implements port.Gate.
func (c *Clusters) LoseHost(ctx context.Context, attempt corral.JobID, lost corral.LostHost) error {
	defer c.Notify()
	return c.db.Write(ctx, Actor, func(tx *store.Tx) error {
		_, err := tx.LoseHost(attempt, lostHosts([]corral.LostHost{lost})[0])
		return err
	})
}

// Report implements port.Gate: what a pilot says of itself becomes a line of the attempt's history.
func (c *Clusters) Report(ctx context.Context, attempt corral.JobID, phase, reason string) error {
	defer c.Notify()
	return c.db.Write(ctx, Actor, func(tx *store.Tx) error {
		return tx.Log("job", int64(attempt), phase, reason)
	})
}
