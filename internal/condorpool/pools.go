// Package condorpool runs the HTCondor pools of the clusters of kind condor, as the store says.
//
// A cluster's row is the intent: STARTING, STOPPING and REMOVING ask for something, and each step towards
// it may be repeated after a crash. Every cluster has a goroutine of its own, its keeper, which also looks at
// the pool's collector for workers, has the pool refuse the tokens of attempts that are over, and lets only
// slots of live attempts be matched. The daemons belong to nobody here: when corrald ends they go on, and the
// next keeper finds them.
//
// A cluster's folder, Dir/ID, holds the pool, a link to the release that it runs, and, of a pool that somebody
// else runs, the token that was given for it.
package condorpool

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
)

// Actor is the name under which clusters are changed here.
const Actor = "corrald"

// Releases finds HTCondors for pools of this machine.
type Releases interface {
	// Newest returns the ref of the best that there is.
	Newest(ctx context.Context) (ref string, err error)
	// Release returns the folder of what ref names, and HTCondor's version.
	Release(ctx context.Context, ref string) (dir, version string, err error)
	// Prune removes what was unpacked for Release, but for these folders.
	Prune(keep []string) error
}

// A Queue is the job queue of a cluster, which somebody has to close.
type Queue interface {
	run.Queue
	Close()
}

// Config says where pools are. Dir, Host, Releases and NewQueue are required.
type Config struct {
	Dir      string     // of the clusters' folders, absolute
	Host     netip.Addr // of this machine, on which new pools listen
	Releases Releases
	// NewQueue returns the job queue of a cluster; dir, which exists, is the queue's own. It is closed when the
	// cluster is removed, and when Run ends.
	NewQueue func(cluster corral.Cluster, tools condor.Tools, dir string) Queue
	OnChange func() // called after a cluster's workers have changed; it must not block. nil: nobody wants to know
	RunAs    string // for tests that root runs: whose pools are; see [condor.AccountFor]. corrald leaves it empty
}

// Pools are the HTCondor pools of one corrald. Its methods may be called at the same time.
type Pools struct {
	lg  *slog.Logger
	db  *store.DB
	cfg Config

	mu      sync.Mutex // guards following
	keepers map[corral.ClusterID]*keeper

	linking sync.Mutex // held from where a release is found until a cluster's link leads to it, and while others are removed
}

// New returns pools that are looked after once Run is called.
func New(lg *slog.Logger, db *store.DB, cfg Config) *Pools {
	if cfg.OnChange == nil {
		cfg.OnChange = func() {}
	}
	return &Pools{lg: lg, db: db, cfg: cfg, keepers: map[corral.ClusterID]*keeper{}}
}

// troublePause is how long is waited after the store did not answer.
const troublePause = time.Second

// Run keeps all clusters until ctx ends, and returns when every keeper is gone. The pools go on.
func (p *Pools) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		changed := p.db.Changed(store.Subject{Object: corral.ObjectCluster})
		var again <-chan time.Time
		ids, err := p.clusters(ctx)
		if err != nil && ctx.Err() == nil {
			p.lg.Error("listing clusters failed", "err", err)
			again = time.After(troublePause)
		}
		for _, id := range ids {
			if k := p.keeper(id); k.begin() {
				wg.Go(func() { p.serve(ctx, k) })
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// clusters lists those that need a keeper.
func (p *Pools) clusters(ctx context.Context) ([]corral.ClusterID, error) {
	var ids []corral.ClusterID
	err := p.db.View(ctx, func(tx *store.Tx) error {
		all, err := tx.Clusters(store.Filter{})
		for _, c := range all {
			if c.Kind == corral.Condor {
				ids = append(ids, c.ID)
			}
		}
		return err
	})
	return ids, err
}

// serve runs a keeper until ctx ends or its cluster is DELETED, and forgets it then.
func (p *Pools) serve(ctx context.Context, k *keeper) {
	k.run(ctx)
	p.mu.Lock()
	delete(p.keepers, k.id)
	p.mu.Unlock()
	k.retire()
}

// keeper returns a cluster's keeper, which may have to be begun.
func (p *Pools) keeper(id corral.ClusterID) *keeper {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.keepers[id]
	if k == nil {
		k = &keeper{p: p, lg: p.lg.With("cluster", id), id: id, dir: p.dir(id)}
		p.keepers[id] = k
	}
	return k
}

func (p *Pools) dir(id corral.ClusterID) string {
	return filepath.Join(p.cfg.Dir, strconv.FormatInt(int64(id), 10))
}

// Workers returns the workers that the cluster's collector knew when it was last asked, by id. Those that it did not
// name any longer, or that were there before it stopped answering, are not Connected; they are kept for a while.
func (p *Pools) Workers(id corral.ClusterID) []corral.Worker {
	p.mu.Lock()
	k := p.keepers[id]
	p.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.known()
}

// ready returns the keeper of a READY cluster and the commands on its pool. Otherwise the error is Unavailable if
// it is worth asking again soon, and a Conflict if somebody has to start the cluster first.
func (p *Pools) ready(ctx context.Context, id corral.ClusterID) (*keeper, corral.Cluster, condor.Tools, error) {
	var c corral.Cluster
	err := p.db.View(ctx, func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(id)
		return err
	})
	if err != nil {
		return nil, c, condor.Tools{}, err
	}
	place := "cluster " + c.Name
	switch {
	case c.Kind != corral.Condor:
		return nil, c, condor.Tools{}, corral.ErrorAt(corral.Conflict, place, "is of kind %s: it has no HTCondor pool", c.Kind)
	case c.State == corral.ClusterStarting:
		return nil, c, condor.Tools{}, corral.ErrorAt(corral.Unavailable, place, "its pool is still starting")
	case c.State != corral.ClusterReady:
		return nil, c, condor.Tools{}, corral.ErrorAt(corral.Conflict, place, "%s", c.Idle())
	}
	k := p.keeper(id)
	tools, ok := k.commands()
	if !ok {
		return nil, c, condor.Tools{}, corral.ErrorAt(corral.Unavailable, place, "its pool has not been found yet")
	}
	return k, c, tools, nil
}

// Queue returns the job queue of a READY cluster. It stays the same while the pool is stopped or restarted.
func (p *Pools) Queue(c corral.Cluster) (run.Queue, error) {
	k, c, tools, err := p.ready(context.Background(), c.ID)
	if err != nil {
		return nil, err
	}
	return k.queueOf(c, tools)
}

// Env returns what HTCondor's commands, and whatever starts them, need in their environment to use the pool of a
// READY cluster, as "NAME=value". PATH holds only HTCondor's own folders, to be put before everybody's. CONDOR_IDS
// matters to root alone, whose commands want to know as whom HTCondor runs here: then they work, too.
func (p *Pools) Env(ctx context.Context, id corral.ClusterID) ([]string, error) {
	_, c, tools, err := p.ready(ctx, id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(tools.Release, "bin") + ":" + filepath.Join(tools.Release, "sbin")
	return []string{"CONDOR_CONFIG=" + tools.Config, fmt.Sprintf("CONDOR_IDS=%d.%d", tools.As.UID, tools.As.GID),
		"PATH=" + path, "CORRAL_CLUSTER=" + c.Name}, nil
}
