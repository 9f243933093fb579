// Package condorpool runs the HTCondor pools of the clusters of kind condor, as the store says.
//
// A cluster's row is the intent: STARTING, STOPPING and REMOVING ask for something, and each step towards it may be
// repeated after a crash. The daemons are not children of corrald: they go on when it ends, and the next one finds
// them.
//
// Each cluster has a [keeper]: a goroutine that does what the row asks for. While the cluster is READY it also asks
// the pool's collector for workers, has the pool refuse the tokens of attempts that are over, and lets only slots of
// live attempts be matched. When it does so is decided by pure values that are given the time:
//
//	health  when the daemons are asked for, and what their answer means
//	view    when the collector is asked for workers; slots.go: what its answer means
//	told    when the pool is told which attempts are alive
//
// What a keeper touches has a type each: its row in the store, the cluster's folder, the releases that all clusters
// choose from, and the pool, which is a condor.Pool or, where somebody else runs it, a [remote]. What other goroutines
// see of a keeper is [shared].
package condorpool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
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

// A Queue is the job queue of a cluster, which has to be closed.
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
	// NewStream returns the queue of a cluster whose tasks are streamed, likewise; glideins are the cluster's workers.
	NewStream func(cluster corral.ClusterID, tools condor.Tools, dir string, glideins func() []corral.Worker) (
		*stream.Stream, error)
	OnChange func() // called after a cluster's workers have changed; it must not block. nil: nothing is called
	RunAs    string // for tests that root runs: whose pools are; see [condor.AccountFor]. corrald leaves it empty
}

// Keepers keep the HTCondor pools of one corrald. Their methods may be called at the same time. They see to it that
// each cluster has one keeper, whose goroutine Run starts, and forget it when its cluster is DELETED. A keeper may be
// there before its goroutine: the queue of a READY cluster may be asked for before Run has seen the cluster.
type Keepers struct {
	lg       *slog.Logger
	db       *store.DB
	cfg      Config
	releases *releases

	mu      sync.Mutex // guards keepers
	keepers map[corral.ClusterID]*keeper
}

// New returns keepers that begin once Run is called.
func New(lg *slog.Logger, db *store.DB, cfg Config) *Keepers {
	if cfg.OnChange == nil {
		cfg.OnChange = func() {}
	}
	return &Keepers{
		lg: lg, db: db, cfg: cfg,
		releases: &releases{lg: lg, source: cfg.Releases, dir: cfg.Dir},
		keepers:  map[corral.ClusterID]*keeper{},
	}
}

// troublePause is how long a keeper waits after the store did not answer. A disk that is full stays so for a while.
const troublePause = time.Second

// Run keeps all clusters until ctx ends, and returns when every keeper is gone. The pools go on.
func (p *Keepers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	// As in keeper.run, the channel is taken before the store is read, so that no change falls between the two.
	for {
		changed := p.db.Changed(store.Subject{Object: corral.ObjectCluster})
		var again <-chan time.Time
		all, err := clusters(ctx, p.db)
		if err != nil && ctx.Err() == nil {
			p.lg.Error("listing clusters failed", "error", err)
			again = time.After(troublePause)
		}
		for _, c := range all {
			if k := p.keeper(c); k.shared.begin() {
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

// serve runs a keeper until ctx ends or its cluster is DELETED, and forgets it then.
func (p *Keepers) serve(ctx context.Context, k *keeper) {
	k.run(ctx)
	p.mu.Lock()
	delete(p.keepers, k.row.id)
	p.mu.Unlock()
	k.shared.retire()
}

// keeper returns a cluster's keeper, which may have to be begun.
func (p *Keepers) keeper(c corral.Cluster) *keeper {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := c.ID
	k := p.keepers[id]
	if k == nil {
		k = &keeper{
			lg: p.lg.With("cluster", id), cfg: &p.cfg, releases: p.releases,
			row: row{p.db.Owner(c.Owner), id}, dir: p.folder(id),
			shared: shared{onChange: p.cfg.OnChange},
		}
		k.watch = watch{lg: k.lg, row: k.row, dir: k.dir, shared: &k.shared}
		p.keepers[id] = k
	}
	return k
}

// folder is a cluster's, by its id: names of clusters may be used again.
func (p *Keepers) folder(id corral.ClusterID) folder {
	return folder{filepath.Join(p.cfg.Dir, strconv.FormatInt(int64(id), 10)), p.cfg.RunAs}
}

// Workers returns the workers that the cluster's collector knew when it was last asked, by id. Workers that it no
// longer names, or that were there before it stopped answering, are not Connected; they are kept for a while.
func (p *Keepers) Workers(id corral.ClusterID) []corral.Worker {
	p.mu.Lock()
	k := p.keepers[id]
	p.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.shared.known()
}

// ready is what everything that uses a pool begins with. It returns the keeper of a READY cluster and the commands on
// its pool. Otherwise the error is Unavailable if it is worth asking again soon, and a Conflict if somebody has to
// start the cluster first.
func (p *Keepers) ready(ctx context.Context, id corral.ClusterID) (*keeper, corral.Cluster, condor.Tools, error) {
	c, err := store.ReadWhole(ctx, p.db, func(tx *store.WholeTx) (corral.Cluster, error) { return tx.Cluster(id) })
	if err != nil {
		return nil, c, condor.Tools{}, err
	}
	place := "cluster " + c.Name
	switch {
	case c.Kind != corral.Condor:
		err = corral.ErrorAt(corral.Conflict, place, "is of kind %s: it has no HTCondor pool", c.Kind)
	case c.State == corral.ClusterStarting:
		err = corral.ErrorAt(corral.Unavailable, place, "its pool is still starting")
	case c.State != corral.ClusterReady:
		err = corral.ErrorAt(corral.Conflict, place, "%s", c.Idle())
	}
	if err != nil {
		return nil, c, condor.Tools{}, err
	}
	k := p.keeper(c)
	tools, ok := k.shared.commands()
	if !ok {
		return nil, c, condor.Tools{}, corral.ErrorAt(corral.Unavailable, place, "its pool has not been found yet")
	}
	return k, c, tools, nil
}

// Queue returns the job queue of a READY cluster. It stays the same while the pool is stopped or restarted.
func (p *Keepers) Queue(c corral.Cluster) (run.Queue, error) {
	k, c, tools, err := p.ready(context.Background(), c.ID)
	if err != nil {
		return nil, err
	}
	return k.queue(c, tools)
}

// Stream returns the queue of a READY cluster whose tasks go to worker jobs, likewise.
func (p *Keepers) Stream(id corral.ClusterID) (*stream.Stream, error) {
	k, c, tools, err := p.ready(context.Background(), id)
	if err != nil {
		return nil, err
	}
	return k.stream(c, tools)
}

// Streamed returns the queue that Stream has returned before, or nil.
func (p *Keepers) Streamed(id corral.ClusterID) *stream.Stream {
	p.mu.Lock()
	k := p.keepers[id]
	p.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.shared.streamed()
}

// Env returns what HTCondor's commands, and whatever starts them, need in their environment to use the pool of a
// READY cluster, as "NAME=value". PATH holds only HTCondor's own folders, to be put before the user's. CONDOR_IDS
// matters to root alone, whose commands have to know as whom HTCondor runs here.
func (p *Keepers) Env(ctx context.Context, id corral.ClusterID) ([]string, error) {
	_, c, tools, err := p.ready(ctx, id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(tools.Release, "bin") + ":" + filepath.Join(tools.Release, "sbin")
	return []string{"CONDOR_CONFIG=" + tools.Config, fmt.Sprintf("CONDOR_IDS=%d.%d", tools.As.UID, tools.As.GID),
		"PATH=" + path, "CORRAL_CLUSTER=" + c.Name}, nil
}

// PutToken keeps the text of a token for a cluster that is attached to a pool. It is called before the cluster
// becomes READY, in the transaction that makes it STARTING for example; a token that is there already is replaced.
func (p *Keepers) PutToken(id corral.ClusterID, secret string) error {
	secret = strings.TrimSpace(secret)
	if _, err := condor.ParseToken(secret); err != nil {
		return corral.ErrorAt(corral.Invalid, "token", "is not a token of HTCondor: %w", err)
	}
	dir := p.folder(id)
	err := dir.make()
	if err == nil {
		err = dir.write(tokenFile, secret+"\n")
	}
	if err != nil {
		return corral.Errorf(corral.Failed, "keeping the token of a pool: %w", err)
	}
	return nil
}

// Mint makes a token with which the workers of an attempt may join the cluster's pool, and notes it in the store
// before it returns. In a pool of ours the token is the attempt's own and lives as long as asked; in others it may be
// the one that was given for the pool. The error is Forbidden if there is none that workers may have.
func (p *Keepers) Mint(
	ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration,
) (secret string, ends time.Time, err error) {
	k, c, tools, err := p.ready(ctx, cluster)
	if err != nil {
		return "", time.Time{}, err
	}
	var token condor.Token
	if pool := k.shared.own(); pool != nil {
		token, err = pool.Mint(int64(attempt), lifetime)
	} else {
		token, err = remote{c, tools, k.dir}.mint(ctx, attempt, lifetime)
	}
	if err == nil && !token.Expires.After(time.Now()) {
		err = corral.Errorf(corral.Failed, "the token for it ended at %s", token.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return "", time.Time{}, corral.ErrorAt(mintKind(err), "cluster "+c.Name, "%w", err)
	}
	err = k.row.addToken(ctx, corral.PoolToken{ID: token.ID, Cluster: cluster, Attempt: attempt, EndsAt: token.Expires})
	if err != nil {
		return "", time.Time{}, err
	}
	return token.Secret(), token.Expires, nil
}

// mintKind says whether it is worth asking again for a token that could not be made: not if there will be none, or if
// the pool has refused; but if it did not answer.
func mintKind(err error) corral.Kind {
	var refused *condor.Refused
	switch {
	case corral.KindOf(err) == corral.Forbidden:
		return corral.Forbidden
	case errors.As(err, &refused):
		return corral.Failed
	}
	return corral.Unavailable
}
