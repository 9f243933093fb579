package condorpool

import (
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
)

// clusters lists the clusters that need a keeper.
func clusters(ctx context.Context, db *store.DB) (all []corral.Cluster, err error) {
	return store.ReadWhole(ctx, db, func(tx *store.WholeTx) ([]corral.Cluster, error) {
		all, err := tx.Clusters(store.Filter{})
		return slices.DeleteFunc(all, func(c corral.Cluster) bool { return c.Kind != corral.Condor }), err
	})
}

// A row provides access to one cluster's data in the store: its row, its attempts, and their tokens. Every move is one
// transaction that checks the row first, because a user may have requested something else while the keeper was busy
// with the pool.
type row struct {
	db store.Owner // the cluster owner's
	id corral.ClusterID
}

// read returns the current row.
func (r row) read(ctx context.Context) (c corral.Cluster, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(r.id)
		return err
	})
	return c, err
}

// set applies fn to the cluster's row and stores the result.
func (r row) set(ctx context.Context, fn func(*corral.Cluster)) (c corral.Cluster, err error) {
	err = r.db.Write(ctx, Actor, func(tx *store.Tx) (err error) {
		c, err = tx.SetCluster(r.id, fn)
		return err
	})
	return c, err
}

// move applies a move and adds an entry about the pool to the history unless pool is "". It does nothing if a user has
// requested something else in the meantime; the next step handles that request.
func (r row) move(ctx context.Context, from corral.ClusterState, move corral.ClusterMove, reason, pool string) error {
	return r.db.Write(ctx, Actor, func(tx *store.Tx) error {
		c, err := tx.Cluster(r.id)
		if err != nil || c.State != from {
			return err
		}
		if pool != "" {
			if err := tx.Log(corral.ObjectCluster, int64(r.id), "pool", pool); err != nil {
				return err
			}
		}
		_, err = tx.MoveCluster(r.id, move, reason)
		return err
	})
}

// health sets the reason of a READY cluster: the pool's problem, or "". It returns the text that it added to the
// history, or "" if the problem has not changed.
func (r row) health(ctx context.Context, wrong string) (news string, err error) {
	err = r.db.Write(ctx, Actor, func(tx *store.Tx) error {
		c, err := tx.Cluster(r.id)
		if err != nil || c.State != corral.ClusterReady || c.Reason == wrong {
			return err
		}
		if _, err := tx.SetCluster(r.id, func(c *corral.Cluster) { c.Reason = wrong }); err != nil {
			return err
		}
		if news = wrong; news == "" {
			news = "all daemons are running again"
		}
		return tx.Log(corral.ObjectCluster, int64(r.id), "health", news)
	})
	return news, err
}

// An attempt represents an attempt that may have workers.
type attempt struct {
	corral.Job
	cluster  corral.ClusterID
	hosts    int    // each host runs a worker
	identity string // the identity of its workers in the pool, or "" if any identity is possible
}

// attempts returns the cluster's attempts that may have workers: the live attempts of live glideins.
func (r row) attempts(ctx context.Context, c corral.Cluster) (live []attempt, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) error {
		glideins, err := tx.Glideins(store.GlideinFilter{Cluster: r.id, Live: true, InBrief: true})
		live = attemptsOf(c, glideins)
		return err
	})
	return live, err
}

// attemptsOf returns the live attempts of glideins. In a pool of ours each attempt's workers use their own token, by
// which the collector identifies them; in other pools all workers may use the same token, and we cannot identify them.
func attemptsOf(c corral.Cluster, glideins []corral.Glidein) (live []attempt) {
	for _, g := range glideins {
		for _, j := range g.Live() {
			a := attempt{Job: j, cluster: c.ID, hosts: g.Hosts}
			if !c.Attached {
				a.identity = condor.GlideinIdentity(int64(j.ID))
			}
			live = append(live, a)
		}
	}
	return live
}

// addToken records a new token before it is handed out.
func (r row) addToken(ctx context.Context, t corral.PoolToken) error {
	return r.db.Write(ctx, Actor, func(tx *store.Tx) error { return tx.AddPoolToken(t) })
}

// tokensOver returns the tokens of ended attempts that the pool may still accept at now.
func (r row) tokensOver(ctx context.Context) (over []corral.PoolToken, now time.Time, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		over, err = tx.PoolTokensOver(r.id)
		return err
	})
	return over, now, err
}

// revoked records that the pool has revoked tokens.
func (r row) revoked(ctx context.Context, tokens []corral.PoolToken) error {
	return r.db.Write(ctx, Actor, func(tx *store.Tx) error {
		for _, t := range tokens {
			if err := tx.RevokedPoolToken(t.ID); err != nil {
				return err
			}
		}
		return nil
	})
}
