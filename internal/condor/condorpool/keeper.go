package condorpool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
)

// A keeper keeps one cluster in the state that its row requests: it performs one step of the cluster's life, records
// the result, and waits for the next change of the row or of an attempt, or until an action of its watch is due. Every
// step can be repeated: if corrald dies during a step, the row is unchanged.
type keeper struct {
	lg       *slog.Logger
	cfg      *Config
	releases *releases
	row      row
	dir      folder
	shared   shared
	watch    watch // used only by the goroutine of run
}

// breath is the minimum interval between two steps, however much happens at the sites.
const breath = 100 * time.Millisecond

// run serves the cluster until ctx ends or the cluster is DELETED.
func (k *keeper) run(ctx context.Context) {
	for {
		// The channels are obtained before the step reads the store, so that no change in between is missed.
		row := k.row.db.Changed(store.Subject{Object: corral.ObjectCluster, ID: int64(k.row.id)})
		jobs := k.row.db.Changed(store.Subject{Object: corral.ObjectJob})
		again, over, err := k.step(ctx)
		if ctx.Err() != nil || over {
			return
		}
		if err != nil {
			k.lg.Error("keeping a cluster failed", "error", err)
			again = troublePause
		}
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-row:
		case <-jobs:
		case <-timer:
			continue
		case <-ctx.Done():
			return
		}
		// Changes tend to occur in bursts: hundreds of attempts start or end together.
		select {
		case <-time.After(breath):
		case <-ctx.Done():
			return
		}
	}
}

// step performs the action that the row requests. It returns the time until the next step if nothing changes (0:
// never), and whether the cluster is over.
func (k *keeper) step(ctx context.Context) (again time.Duration, over bool, err error) {
	c, err := k.row.read(ctx)
	if err != nil {
		return 0, false, err
	}
	switch c.State {
	case corral.ClusterStarting:
		begin := k.start
		if c.Attached {
			begin = k.attach
		}
		err = begin(ctx, c)
	case corral.ClusterReady:
		again, err = k.keep(ctx, c)
	case corral.ClusterStopping:
		err = k.end(ctx, c, corral.ClusterStopEnd)
	case corral.ClusterRemoving:
		err = k.end(ctx, c, corral.ClusterRemoved)
	case corral.ClusterStopped, corral.ClusterFailed:
		k.lost()
	case corral.ClusterDeleted:
		return 0, true, nil
	}
	return again, false, err
}

// Time limits for a pool. On an idle machine it starts in a second and stops in less.
const (
	startTime = 45 * time.Second
	stopTime  = 10 * time.Second // after that its daemons are killed, which loses no jobs from the queue
)

// start starts or restarts the pool and makes the cluster READY or FAILED. It always stops a running pool first, so
// it also performs restarts, and upgrades if the row names another HTCondor.
func (k *keeper) start(ctx context.Context, c corral.Cluster) error {
	c, err := k.choose(ctx, c)
	if err != nil {
		return k.fail(ctx, c, err)
	}
	pool, err := k.open(c)
	if err != nil {
		return k.fail(ctx, c, err)
	}
	live, err := k.row.attempts(ctx, c)
	if err != nil {
		return err
	}
	// The configuration includes this file, so it must exist before the daemons read it.
	if err := k.dir.write(liveFile, liveText(live)); err != nil {
		return err
	}
	from := time.Now()
	err = restart(ctx, pool)
	if unanswered(err) && ctx.Err() == nil { // the pool may be running, at least in part; restart stops it first
		k.lg.Warn("a pool's start got no answer; trying once more", "error", err)
		err = restart(ctx, pool)
	}
	if err != nil {
		return k.fail(ctx, c, err)
	}
	took := time.Since(from).Round(time.Millisecond)
	k.lg.Info("pool started", "collector", c.Collector, "version", c.Version, "took", took)
	k.shared.found(pool, pool.Tools())
	k.releases.prune() // an upgrade has left an unused release behind
	line := fmt.Sprintf("HTCondor %s of %s at %s, in %v", c.Version, c.HTCondor, c.Collector, took)
	return k.row.move(ctx, corral.ClusterStarting, corral.ClusterStarted, "", line)
}

// choose selects the pool's HTCondor and its address, and records both before any daemon is started. Both remain the
// same across restarts, because glideins in queues already use the address.
func (k *keeper) choose(ctx context.Context, c corral.Cluster) (corral.Cluster, error) {
	ref, version, err := k.releases.link(ctx, c.HTCondor, k.dir)
	if err != nil {
		return c, err
	}
	// A port that is free now may be in use before the pool starts. In that case the start fails for that reason.
	address := c.Collector
	if address == "" {
		free, err := condor.FreeAddress(k.cfg.Host)
		if err != nil {
			return c, err
		}
		address = free.String()
	}
	return k.row.set(ctx, func(c *corral.Cluster) {
		c.Collector, c.Version, c.HTCondor = address, version, ref
	})
}

// open returns the cluster's own pool, running or not. It depends only on the row and the folder, so the next corrald
// opens the same pool.
func (k *keeper) open(c corral.Cluster) (*condor.Pool, error) {
	address, err := netip.ParseAddrPort(c.Collector)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "address "+c.Collector,
			"is not an IP address with a port on which a pool could listen")
	}
	return condor.NewPool(condor.PoolConfig{
		Dir:     k.dir.in(poolDir),
		Release: k.dir.in(releaseLink),
		Address: address,
		RunAs:   k.cfg.RunAs,
		Extra:   "# Which slots may be matched: those of live attempts.\ninclude : " + k.dir.in(liveFile),
	})
}

// restart stops a pool if it is running and starts it.
func restart(ctx context.Context, pool *condor.Pool) error {
	if err := stop(ctx, pool); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return pool.Start(ctx)
}

// unanswered reports whether a start failed because HTCondor did not answer: it neither refused the start nor exceeded
// the time limit.
func unanswered(err error) bool {
	return err != nil && !errors.As(err, new(*condor.Refused)) && !errors.Is(err, context.DeadlineExceeded)
}

// stop stops a pool within stopTime. Daemons that are still running then are killed.
func stop(ctx context.Context, pool *condor.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return pool.Stop(ctx)
}

// attach checks that a remote pool answers and accepts the token, and makes the cluster READY or FAILED. It detects
// problems that a user would otherwise discover later, by determining whether workers may join, which schedd accepts
// the jobs, and how workers obtain tokens.
func (k *keeper) attach(ctx context.Context, c corral.Cluster) error {
	ref, _, err := k.releases.link(ctx, c.HTCondor, k.dir)
	if err != nil {
		return k.fail(ctx, c, err)
	}
	asking, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	r, err := k.use(c)
	if err != nil {
		return k.fail(ctx, c, err)
	}
	version, err := r.meet(asking)
	if err != nil {
		return k.fail(ctx, c, err)
	}
	name, at, err := r.findSchedd(asking)
	if err == nil {
		c.Schedd = name
		r, err = k.use(c) // this time with the schedd's name for the commands
	}
	if err != nil {
		return k.fail(ctx, c, err)
	}
	c, err = k.row.set(ctx, func(c *corral.Cluster) {
		c.Version, c.HTCondor, c.Schedd, c.ScheddAt = version, ref, name, at
	})
	if err != nil {
		return err
	}
	line := fmt.Sprintf("HTCondor %s at %s, run by another party; %s", version, c.Collector, r.howTokens(asking))
	return k.row.move(ctx, corral.ClusterStarting, corral.ClusterStarted, "", line)
}

// use returns the commands for a remote pool.
func (k *keeper) use(c corral.Cluster) (remote, error) {
	secret, err := k.dir.token()
	if err != nil {
		return remote{}, err
	}
	tools, err := condor.Attach(condor.RemoteConfig{
		Dir:       k.dir.in(poolDir),
		Release:   k.dir.in(releaseLink),
		Collector: c.Collector,
		Schedd:    c.Schedd,
		RunAs:     k.cfg.RunAs,
	}, secret)
	if err == nil {
		k.shared.found(nil, tools)
	}
	return remote{c, tools, k.dir}, err
}

// keep maintains a READY cluster and returns the time until the next check.
func (k *keeper) keep(ctx context.Context, c corral.Cluster) (again time.Duration, err error) {
	tools, ok := k.shared.commands()
	if !ok {
		if tools, err = k.adopt(ctx, c); err != nil {
			return healthIdle, k.watch.note(ctx, sentence(err))
		}
		if _, err := os.Stat(k.dir.in(streamDir)); err == nil { // the queue may contain unneeded worker jobs
			if _, err := k.stream(c, tools); err != nil {
				k.lg.Error("earlier worker jobs could not be adopted", "error", err)
			}
		}
	}
	return k.watch.step(ctx, c, tools)
}

// adopt finds the pool of a READY cluster that an earlier corrald has started. It does not contact the pool: the next
// check determines whether it is running.
func (k *keeper) adopt(ctx context.Context, c corral.Cluster) (condor.Tools, error) {
	if _, err := os.Stat(k.dir.in(releaseLink)); err != nil { // the target was deleted or never existed
		if _, _, err := k.releases.link(ctx, c.HTCondor, k.dir); err != nil {
			return condor.Tools{}, err
		}
	}
	if c.Attached {
		r, err := k.use(c)
		return r.tools, err
	}
	pool, err := k.open(c)
	if err != nil {
		return condor.Tools{}, err
	}
	k.shared.found(pool, pool.Tools())
	return pool.Tools(), nil
}

// end stops the pool. For a removal it also deletes the folder. A remote pool is left alone.
func (k *keeper) end(ctx context.Context, c corral.Cluster, move corral.ClusterMove) error {
	// If there is no configuration, no part of the pool was ever started.
	if _, err := os.Stat(k.dir.in(poolDir + "/condor_config")); err == nil && !c.Attached {
		pool, err := k.open(c)
		if err == nil {
			err = stop(ctx, pool)
		}
		if err != nil {
			return k.fail(ctx, c, err)
		}
	}
	// corrald is ending, perhaps while the pool is being stopped; the next corrald starts over.
	if ctx.Err() != nil {
		return nil
	}
	k.lost()
	if move == corral.ClusterRemoved {
		k.clear(ctx, c)
		k.shared.forget()
		if err := os.RemoveAll(k.dir.path); err != nil {
			return k.fail(ctx, c, err)
		}
		k.releases.prune()
	}
	return k.row.move(ctx, c.State, move, "", "")
}

// clear removes the remaining worker jobs from the queue of a remote pool. If the pool does not answer, the jobs remain
// there and end by themselves when they cannot find corrald.
func (k *keeper) clear(ctx context.Context, c corral.Cluster) {
	s := k.shared.streamed()
	if s == nil || !c.Attached {
		return
	}
	if err := s.Clear(ctx); err != nil {
		k.lg.Warn("worker jobs are left in a pool", "error", err)
	}
}

// fail records why the row's request failed. The cluster stays FAILED until a user requests something else: a start
// that fails is not repeated automatically.
func (k *keeper) fail(ctx context.Context, c corral.Cluster, why error) error {
	if ctx.Err() != nil {
		return nil // corrald is ending; the next corrald tries again
	}
	k.lg.Warn("cluster failed", "state", c.State, "error", why)
	k.lost()
	return k.row.move(ctx, c.State, corral.ClusterFail, sentence(why), "")
}

// lost discards the data about a pool that is no longer available.
func (k *keeper) lost() {
	k.watch.forget()
	k.shared.lost()
}

// stream returns the cluster's queue of tasks for worker jobs.
func (k *keeper) stream(c corral.Cluster, tools condor.Tools) (*stream.Stream, error) {
	return k.shared.streamQueue("cluster "+c.Name, func() (*stream.Stream, error) {
		if err := k.dir.mkdir(streamDir); err != nil {
			return nil, err
		}
		return k.cfg.NewStream(c.ID, tools, k.dir.in(streamDir), k.shared.known)
	})
}

// queue returns the cluster's job queue.
func (k *keeper) queue(c corral.Cluster, tools condor.Tools) (run.Dispatcher, error) {
	return k.shared.jobQueue("cluster "+c.Name, func() (Submitter, error) {
		if err := k.dir.mkdir(queueDir); err != nil {
			return nil, err
		}
		return k.cfg.NewQueue(c, tools, k.dir.in(queueDir)), nil
	})
}
