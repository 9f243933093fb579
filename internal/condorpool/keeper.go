package condorpool

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
)

// A keeper keeps one cluster as its row says.
type keeper struct {
	p   *Pools
	lg  *slog.Logger
	id  corral.ClusterID
	dir string

	mu      sync.Mutex // guards following
	begun   bool
	retired bool          // nobody would close another queue
	pool    *condor.Pool  // nil until it is found, and for an attached cluster
	tools   *condor.Tools // nil until the pool is found
	queue   Queue
	workers []corral.Worker

	// Of the goroutine of run alone.
	checked time.Time // when the daemons were last asked for
	sick    bool      // and whether one was missing
	view    view
	live    string    // the text of the file of live attempts that the negotiator has; "": not known
	told    time.Time // when the pool was last told to read such a file
}

// begin reports whether the caller is the first, who has to call run.
func (k *keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.begun
	k.begun = true
	return first
}

func (k *keeper) commands() (condor.Tools, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tools == nil {
		return condor.Tools{}, false
	}
	return *k.tools, true
}

// found notes how the pool is used from now on; pool is nil for one that somebody else runs.
func (k *keeper) found(pool *condor.Pool, tools condor.Tools) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pool, k.tools = pool, &tools
}

// own returns the pool that this keeper runs, nil if there is none.
func (k *keeper) own() *condor.Pool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pool
}

// lost notes that there is no pool to use.
func (k *keeper) lost() {
	k.mu.Lock()
	k.pool, k.tools = nil, nil
	k.mu.Unlock()
	k.checked, k.told, k.sick, k.live, k.view = time.Time{}, time.Time{}, false, "", view{}
	k.show(nil)
}

// forget closes the queue of a cluster that is removed.
func (k *keeper) forget() {
	k.mu.Lock()
	queue := k.queue
	k.queue = nil
	k.mu.Unlock()
	if queue != nil {
		queue.Close()
	}
}

// retire closes the queue, too, when run has returned. Who has this keeper still, gets no other of it.
func (k *keeper) retire() {
	k.mu.Lock()
	k.retired = true
	k.mu.Unlock()
	k.forget()
}

func (k *keeper) queueOf(c corral.Cluster, tools condor.Tools) (run.Queue, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.retired {
		return nil, corral.ErrorAt(corral.Unavailable, "cluster "+c.Name, "corrald does not look after it at the moment")
	}
	if k.queue == nil {
		dir := filepath.Join(k.dir, "queue")
		if err := k.p.makeFolder(dir); err != nil {
			return nil, corral.ErrorAt(corral.Failed, "cluster "+c.Name, "making the folder of its queue: %w", err)
		}
		k.queue = k.p.cfg.NewQueue(c, tools, dir)
	}
	return k.queue, nil
}

// breath is the shortest time between two steps, however much happens at the sites.
const breath = 100 * time.Millisecond

// run serves the cluster until ctx ends or it is DELETED.
func (k *keeper) run(ctx context.Context) {
	for {
		row := k.p.db.Changed(store.Subject{Object: corral.ObjectCluster, ID: int64(k.id)})
		jobs := k.p.db.Changed(store.Subject{Object: corral.ObjectJob})
		again, over, err := k.step(ctx)
		if ctx.Err() != nil || over {
			return
		}
		if err != nil {
			k.lg.Error("keeping a cluster failed", "err", err)
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
		select {
		case <-time.After(breath):
		case <-ctx.Done():
			return
		}
	}
}

// step does what the row asks for. It says when to look again without a change (0: never), and whether the cluster
// is over.
func (k *keeper) step(ctx context.Context) (again time.Duration, over bool, err error) {
	var c corral.Cluster
	err = k.p.db.View(ctx, func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(k.id)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	switch c.State {
	case corral.ClusterStarting:
		again, err = k.start(ctx, c)
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

// move applies a move, unless somebody asked for something else meanwhile: the next step sees what.
func (k *keeper) move(ctx context.Context, from corral.ClusterState, move corral.ClusterMove, reason string) error {
	return k.p.db.Write(ctx, Actor, func(tx *store.Tx) error {
		c, err := tx.Cluster(k.id)
		if err != nil || c.State != from {
			return err
		}
		_, err = tx.MoveCluster(k.id, move, reason)
		return err
	})
}

// fail records why what the row asked for could not be done.
func (k *keeper) fail(ctx context.Context, c corral.Cluster, why error) error {
	if ctx.Err() != nil {
		return nil // corrald ends; the next one tries again
	}
	k.lg.Warn("cluster failed", "state", c.State, "err", why)
	k.lost()
	return k.move(ctx, c.State, corral.ClusterFail, sentence(why))
}

// set stores facts about the cluster.
func (k *keeper) set(ctx context.Context, fn func(*corral.Cluster)) (c corral.Cluster, err error) {
	err = k.p.db.Write(ctx, Actor, func(tx *store.Tx) (err error) {
		c, err = tx.SetCluster(k.id, fn)
		return err
	})
	return c, err
}

// maxReason is how long a reason may be, in bytes: HTCondor can be talkative.
const maxReason = 1000

// sentence is an error on one line.
func sentence(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + " …"
	}
	return s
}
