package condorpool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
)

// How long a pool may take. It starts in a second and stops in less, on a machine with nothing else to do.
const (
	startTime = 45 * time.Second
	stopTime  = 10 * time.Second // then its daemons are killed, which the queue survives
)

// start starts the pool, or starts it again, and makes the cluster READY or FAILED.
func (k *keeper) start(ctx context.Context, c corral.Cluster) (time.Duration, error) {
	if c.Attached {
		return k.attach(ctx, c)
	}
	c, err := k.choose(ctx, c)
	if err != nil {
		return 0, k.fail(ctx, c, err)
	}
	pool, err := k.open(c)
	if err != nil {
		return 0, k.fail(ctx, c, err)
	}
	if err := k.writeLive(ctx, c); err != nil {
		return 0, err
	}
	from := time.Now()
	if err := restart(ctx, pool); err != nil {
		return 0, k.fail(ctx, c, err)
	}
	took := time.Since(from).Round(time.Millisecond)
	k.lg.Info("pool started", "collector", c.Collector, "version", c.Version, "took", took)
	k.found(pool, pool.Tools())
	k.p.pruneReleases()
	return 0, k.started(ctx, fmt.Sprintf("HTCondor %s of %s at %s, in %v", c.Version, c.HTCondor, c.Collector, took))
}

// started makes the cluster READY, with a line about its pool in the history.
func (k *keeper) started(ctx context.Context, pool string) error {
	return k.p.db.Write(ctx, Actor, func(tx *store.Tx) error {
		c, err := tx.Cluster(k.id)
		if err != nil || c.State != corral.ClusterStarting {
			return err // somebody asked for something else meanwhile
		}
		if err := tx.Log(corral.ObjectCluster, int64(k.id), "pool", pool); err != nil {
			return err
		}
		_, err = tx.MoveCluster(k.id, corral.ClusterStarted, "")
		return err
	})
}

// restart ends what runs of a pool and starts it.
func restart(ctx context.Context, pool *condor.Pool) error {
	if err := stop(ctx, pool); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return pool.Start(ctx)
}

func stop(ctx context.Context, pool *condor.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return pool.Stop(ctx)
}

// choose decides what the pool is made of and where it listens, and records both before anything is started.
func (k *keeper) choose(ctx context.Context, c corral.Cluster) (corral.Cluster, error) {
	ref, version, err := k.linkRelease(ctx, c)
	if err != nil {
		return c, err
	}
	address := c.Collector
	if address == "" {
		free, err := condor.FreeAddress(k.p.cfg.Host)
		if err != nil {
			return c, err
		}
		address = free.String()
	}
	return k.set(ctx, func(c *corral.Cluster) {
		c.Collector, c.Version, c.HTCondor = address, version, ref
	})
}

// find returns the HTCondor that the cluster is made of, the newest if that was not said: a cluster is not
// upgraded because it is started again.
func (k *keeper) find(ctx context.Context, c corral.Cluster) (ref, dir, version string, err error) {
	ref = c.HTCondor
	if ref == "" {
		if ref, err = k.p.cfg.Releases.Newest(ctx); err != nil {
			return "", "", "", err
		}
	}
	dir, version, err = k.p.cfg.Releases.Release(ctx, ref)
	return ref, dir, version, err
}

// linkRelease finds the HTCondor that the cluster is made of, and has the link in its folder lead there.
func (k *keeper) linkRelease(ctx context.Context, c corral.Cluster) (ref, version string, err error) {
	k.p.linking.Lock()
	defer k.p.linking.Unlock()
	ref, dir, version, err := k.find(ctx, c)
	if err == nil {
		if err = k.link(dir); err != nil {
			err = fmt.Errorf("preparing the cluster's folder: %w", err)
		}
	}
	return ref, version, err
}

// pruneReleases removes releases that no cluster is made of any more: each upgrade leaves one.
func (p *Pools) pruneReleases() {
	p.linking.Lock()
	defer p.linking.Unlock()
	links, err := filepath.Glob(filepath.Join(p.cfg.Dir, "*", "release"))
	var used []string
	for _, name := range links {
		dir, errRead := os.Readlink(name)
		used, err = append(used, dir), errors.Join(err, errRead)
	}
	if err == nil {
		err = p.cfg.Releases.Prune(used)
	}
	if err != nil {
		p.lg.Warn("releases that nobody uses stay", "err", err)
	}
}

// open returns the cluster's own pool, running or not. Its release is the link in the folder, which stays where it is when the
// pool is upgraded: shells and queues that use it go on with the new one.
func (k *keeper) open(c corral.Cluster) (*condor.Pool, error) {
	address, err := netip.ParseAddrPort(c.Collector)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "address "+c.Collector, "is not an IP address with a port, on which a pool could listen")
	}
	pool, err := condor.NewPool(condor.PoolConfig{
		Dir:     filepath.Join(k.dir, "pool"),
		Release: k.release(),
		Address: address,
		RunAs:   k.p.cfg.RunAs,
		Extra:   "# Which slots may be matched: those of live attempts.\ninclude : " + k.liveFile(),
	})
	if err != nil {
		return nil, err
	}
	return pool, nil
}

func (k *keeper) release() string { return filepath.Join(k.dir, "release") }

// link makes the folder and, at once, the link to the release in it.
func (k *keeper) link(release string) error {
	if err := os.MkdirAll(k.p.cfg.Dir, 0o755); err != nil {
		return err
	}
	if err := k.p.makeFolder(k.dir); err != nil {
		return err
	}
	aside := k.release() + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(release, aside); err != nil {
		return err
	}
	return os.Rename(aside, k.release())
}

// adopt finds the pool of a READY cluster, which an earlier corrald has started.
func (k *keeper) adopt(ctx context.Context, c corral.Cluster) error {
	if _, err := os.Stat(k.release()); err != nil { // what it leads to was deleted, or never there
		if _, _, err := k.linkRelease(ctx, c); err != nil {
			return err
		}
	}
	if c.Attached {
		return k.use(c)
	}
	pool, err := k.open(c)
	if err != nil {
		return err
	}
	k.found(pool, pool.Tools())
	return nil
}

// end stops the pool. For a removal it also deletes the folder.
func (k *keeper) end(ctx context.Context, c corral.Cluster, move corral.ClusterMove) error {
	// Before a pool has its configuration, nothing of it was started.
	if _, err := os.Stat(filepath.Join(k.dir, "pool", "condor_config")); err == nil && !c.Attached {
		pool, err := k.open(c)
		if err != nil {
			return k.fail(ctx, c, err)
		}
		if err := stop(ctx, pool); err != nil {
			return k.fail(ctx, c, err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	k.lost()
	if move == corral.ClusterRemoved {
		k.forget()
		if err := os.RemoveAll(k.dir); err != nil {
			return k.fail(ctx, c, err)
		}
		k.p.pruneReleases()
	}
	return k.move(ctx, c.State, move, "")
}

// makeFolder makes a folder that only the pools' owner enters, if it is not there.
func (p *Pools) makeFolder(name string) error {
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return p.give(name)
}

// give makes a file the pools' owner's, who is somebody else only where root runs tests.
func (p *Pools) give(name string) error {
	if p.cfg.RunAs == "" {
		return nil
	}
	owner, err := condor.AccountFor(p.cfg.RunAs)
	if err != nil {
		return err
	}
	return os.Lchown(name, int(owner.UID), int(owner.GID))
}
