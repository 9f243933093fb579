// Package condorpool runs the HTCondor pools of the clusters of kind condor according to the store.
//
// A cluster's row records the intent: STARTING, STOPPING and REMOVING are requests, and each step towards fulfilling
// them can be repeated after a crash. The daemons are not children of corrald: they continue to run when corrald ends,
// and the next corrald finds them.
//
// Each cluster has a [keeper]: a goroutine that carries out the row's request. While the cluster is READY it also asks
// the pool's collector for workers, makes the pool revoke the tokens of ended attempts, and lets only slots of live
// attempts be matched. Pure values, which receive the time as an argument, decide when this happens:
//
//	health  when the daemons are checked, and what the result means
//	view    when the collector is asked for workers; slots.go: what its answer means
//	told    when the pool is told which attempts are live
//
// Each object that a keeper uses has a type: its row in the store, the cluster's folder, the releases that all clusters
// share, and the pool, which is a condor.Pool or, if another party runs it, a [remote]. The part of a keeper that other
// goroutines use is [shared].
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

// Actor is the name under which this package records its changes to clusters.
const Actor = "corrald"

// Releases finds HTCondor releases for pools on this machine.
type Releases interface {
	// Newest returns the ref of the best available release.
	Newest(ctx context.Context) (ref string, err error)
	// Release returns the folder of the release that ref names, and HTCondor's version.
	Release(ctx context.Context, ref string) (dir, version string, err error)
	// Prune removes all releases that were unpacked for Release, except these folders.
	Prune(keep []string) error
}

// A Submitter passes the jobs of runs to a pool's schedd. It must be closed.
type Submitter interface {
	run.Dispatcher
	Close()
}

// Config configures Keepers. Dir, Host, Releases and NewQueue are required.
type Config struct {
	Dir      string     // absolute path of the parent of the clusters' folders
	Host     netip.Addr // address of this machine on which new pools listen
	Releases Releases
	// NewQueue returns a cluster's job queue; dir exists and belongs to the queue. The queue is closed when the
	// cluster is removed and when Run ends.
	NewQueue func(cluster corral.Cluster, tools condor.Tools, dir string) Submitter
	// NewStream returns a cluster's queue of streamed tasks, under the same conditions as NewQueue; glideins returns
	// the cluster's workers.
	NewStream func(cluster corral.ClusterID, tools condor.Tools, dir string, glideins func() []corral.Worker) (
		*stream.Stream, error)
	OnChange func() // called after a cluster's workers have changed; it must not block. nil: not called
	RunAs    string // the owner of pools in tests that run as root, see [condor.AccountFor]; empty in corrald
}

// Keepers maintains the HTCondor pools of one corrald. Its methods may be called concurrently. Each cluster has one
// keeper, which is removed when its cluster is DELETED; Run starts the keeper's goroutine. A keeper may exist before
// its goroutine, because the queue of a READY cluster may be requested before Run has found the cluster.
type Keepers struct {
	lg       *slog.Logger
	db       *store.DB
	cfg      Config
	releases *releases

	mu      sync.Mutex // guards keepers
	keepers map[corral.ClusterID]*keeper
}

// New returns Keepers, which Run starts.
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

// troublePause is a keeper's pause after a failed access to the store. A full disk, for example, remains full for a
// while.
const troublePause = time.Second

// Run maintains all clusters until ctx ends, and returns when every keeper has ended. The pools continue.
func (p *Keepers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	// As in keeper.run, the channel is obtained before the store is read, so that no change in between is missed.
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

// serve runs a keeper until ctx ends or the keeper's cluster is DELETED, and then removes the keeper.
func (p *Keepers) serve(ctx context.Context, k *keeper) {
	k.run(ctx)
	p.mu.Lock()
	delete(p.keepers, k.row.id)
	p.mu.Unlock()
	k.shared.retire()
}

// keeper returns a cluster's keeper, creating it if necessary.
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

// folder returns a cluster's folder, which is named by its id because names may be reused.
func (p *Keepers) folder(id corral.ClusterID) folder {
	return folder{filepath.Join(p.cfg.Dir, strconv.FormatInt(int64(id), 10)), p.cfg.RunAs}
}

// Workers returns, by id, the workers that the cluster's collector listed when it was last queried. Workers that the
// collector no longer lists, or that it listed before it stopped answering, are not Connected; they are kept for a
// while.
func (p *Keepers) Workers(id corral.ClusterID) []corral.Worker {
	p.mu.Lock()
	k := p.keepers[id]
	p.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.shared.known()
}

// ready returns the keeper of a READY cluster and the commands for its pool; every use of a pool begins with a call of
// ready. Otherwise the error is Unavailable if a retry may soon succeed, and Conflict if a user has to start the
// cluster first.
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

// Queue returns the job queue of a READY cluster. The queue remains the same while the pool is stopped or restarted.
func (p *Keepers) Queue(c corral.Cluster) (run.Dispatcher, error) {
	k, c, tools, err := p.ready(context.Background(), c.ID)
	if err != nil {
		return nil, err
	}
	return k.queue(c, tools)
}

// Stream similarly returns the queue of a READY cluster whose tasks are sent to worker jobs.
func (p *Keepers) Stream(id corral.ClusterID) (*stream.Stream, error) {
	k, c, tools, err := p.ready(context.Background(), id)
	if err != nil {
		return nil, err
	}
	return k.stream(c, tools)
}

// Streamed returns the queue that an earlier call of Stream has created, or nil if there is no such queue.
func (p *Keepers) Streamed(id corral.ClusterID) *stream.Stream {
	p.mu.Lock()
	k := p.keepers[id]
	p.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.shared.streamed()
}

// Env returns the environment variables with which HTCondor's commands, or programs that start them, can use the pool
// of a READY cluster, as "NAME=value". PATH contains only HTCondor's own folders, which must precede those of the user.
// CONDOR_IDS matters only to root, whose commands need the account under which HTCondor runs.
func (p *Keepers) Env(ctx context.Context, id corral.ClusterID) ([]string, error) {
	_, c, tools, err := p.ready(ctx, id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(tools.Release, "bin") + ":" + filepath.Join(tools.Release, "sbin")
	return []string{"CONDOR_CONFIG=" + tools.Config, fmt.Sprintf("CONDOR_IDS=%d.%d", tools.As.UID, tools.As.GID),
		"PATH=" + path, "CORRAL_CLUSTER=" + c.Name}, nil
}

// PutToken stores a token for a cluster that is attached to a remote pool. It must be called before the cluster
// becomes READY, for example in the transaction that makes it STARTING; an existing token is replaced.
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
		return corral.Errorf(corral.Failed, "storing a pool's token: %w", err)
	}
	return nil
}

// Mint creates a token with which an attempt's workers may join the cluster's pool, and records it in the store before
// it returns. In a pool of ours each attempt has its own token with the requested lifetime; in other pools the token
// may be the one provided for the pool. The error is Forbidden if there is no token that workers may receive.
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
		err = corral.Errorf(corral.Failed, "the token for it expired at %s", token.Expires.UTC().Format(time.RFC3339))
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

// mintKind returns the kind of the error for a token that could not be created. A retry is worthwhile only if the
// pool did not answer, not if it refused or if there is no suitable token.
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
