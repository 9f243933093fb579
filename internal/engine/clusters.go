package engine

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/pool"
)

// Clusters holds the dispatchers of the embedded personal clusters. It is the worker port's gate: who
// may register is decided here, from what is recorded.
type Clusters struct {
	lg  *slog.Logger
	db  *store.DB
	cfg pool.Config

	mu          sync.Mutex // guards following
	dispatchers map[corral.ClusterID]*pool.Dispatcher
	changed     chan struct{} // closed and replaced when workers come or go
}

// NewClusters returns the set of clusters; cfg.OnChange is taken over.
func NewClusters(lg *slog.Logger, db *store.DB, cfg pool.Config) *Clusters {
	c := &Clusters{
		lg:          lg,
		db:          db,
		dispatchers: map[corral.ClusterID]*pool.Dispatcher{},
		changed:     make(chan struct{}),
	}
	cfg.OnChange = c.notify
	c.cfg = cfg
	return c
}

// Changed returns a channel that is closed when workers come or go next.
func (c *Clusters) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *Clusters) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close ends all dispatchers; workers notice and try to come back. It holds no lock while it waits for
// them, since they may be about to notify.
func (c *Clusters) Close() {
	for _, d := range c.all() {
		d.Close()
	}
}

func (c *Clusters) dispatcher(id corral.ClusterID) *pool.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dispatchers[id]
	if d == nil {
		d = pool.NewDispatcher(c.lg.With("cluster", id), c.cfg)
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
		return nil, corral.ErrorAt(corral.Conflict, "cluster "+cluster.Name, "is %s", cluster.State)
	}
	return c.dispatcher(id), nil
}

// Workers returns the workers registered in a cluster, by id.
func (c *Clusters) Workers(id corral.ClusterID) []corral.Worker {
	c.mu.Lock()
	d := c.dispatchers[id]
	c.mu.Unlock()
	if d == nil {
		return nil // nobody has dialled in yet
	}
	workers := d.Workers()
	for i := range workers {
		workers[i].Cluster = id
	}
	return workers
}

// registered counts the workers of each attempt that are in any cluster now.
func (c *Clusters) registered() map[corral.JobID]int {
	n := map[corral.JobID]int{}
	for _, d := range c.all() {
		for _, w := range d.Workers() {
			if w.Connected {
				n[w.Attempt]++
			}
		}
	}
	return n
}

// drain asks the pilot and the workers of an attempt to finish what they run and leave, now or when they
// dial in next.
func (c *Clusters) drain(cluster corral.ClusterID, attempt corral.JobID) {
	c.dispatcher(cluster).Drain(attempt)
}

func (c *Clusters) all() []*pool.Dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*pool.Dispatcher, 0, len(c.dispatchers))
	for _, d := range c.dispatchers {
		all = append(all, d)
	}
	return all
}

// Admit implements pool.Gate: the token must be that of the attempt that is named, not expired, and
// the attempt alive; a worker must belong to the pilot that holds the attempt's lease.
func (c *Clusters) Admit(ctx context.Context, cred pool.Credentials) (pool.Admission, error) {
	var (
		job corral.Job
		g   corral.Glidein
		now time.Time
	)
	err := c.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		if job, err = tx.JobTagged(cred.Tag); err != nil {
			return err
		}
		g, err = tx.Glidein(job.Glidein)
		return err
	})
	if corral.KindOf(err) == corral.NotFound {
		return pool.Admission{}, corral.ErrorAt(corral.Unauthenticated, "attempt "+cred.Tag, "is not known here")
	}
	if err != nil {
		return pool.Admission{}, err
	}
	if err := mayEnter(job, cred, now); err != nil {
		return pool.Admission{}, err
	}
	return pool.Admission{Attempt: job.ID, Glidein: g.ID, Cluster: g.Cluster, Dispatcher: c.dispatcher(g.Cluster)}, nil
}

// mayEnter is the decision of Admit.
func mayEnter(job corral.Job, cred pool.Credentials, now time.Time) error {
	place := "attempt " + job.Tag
	switch {
	case subtle.ConstantTimeCompare([]byte(job.TokenDigest), []byte(cred.TokenDigest)) != 1:
		return corral.ErrorAt(corral.Unauthenticated, place, "the token is not this attempt's")
	case now.After(job.TokenEndsAt):
		return corral.ErrorAt(corral.Unauthenticated, place, "the token expired at %s", job.TokenEndsAt.Format(time.RFC3339))
	case !job.Live():
		return corral.ErrorAt(corral.Forbidden, place, "ended as %s", job.Outcome)
	case cred.Role == pool.RoleWorker && (job.LeaseHolder == "" || cred.Holder != job.LeaseHolder):
		return corral.ErrorAt(corral.Forbidden, place, "its lease is not held by this worker's pilot")
	}
	return nil
}

// Lease implements pool.Gate: the first holder gets the attempt for good.
func (c *Clusters) Lease(ctx context.Context, attempt corral.JobID, holder string) error {
	return c.db.Write(ctx, Actor, func(tx *store.Tx) error {
		_, err := tx.LeaseJob(attempt, holder)
		return err
	})
}

// Report implements pool.Gate: what a pilot says of itself becomes a line of the attempt's history.
func (c *Clusters) Report(ctx context.Context, attempt corral.JobID, phase, reason string) error {
	defer c.notify()
	return c.db.Write(ctx, Actor, func(tx *store.Tx) error {
		return tx.Log("job", int64(attempt), phase, reason)
	})
}
