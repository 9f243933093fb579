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

// A row is what the store has of one cluster: its row, its attempts, and the tokens that they got. Every move is one
// transaction that looks at the row first: while a keeper was busy with a pool, a user may have asked for something
// else.
type row struct {
	db store.Owner // the cluster's
	id corral.ClusterID
}

// read returns the row as it is now.
func (r row) read(ctx context.Context) (c corral.Cluster, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(r.id)
		return err
	})
	return c, err
}

// set stores facts about the cluster.
func (r row) set(ctx context.Context, fn func(*corral.Cluster)) (c corral.Cluster, err error) {
	err = r.db.Write(ctx, Actor, func(tx *store.Tx) (err error) {
		c, err = tx.SetCluster(r.id, fn)
		return err
	})
	return c, err
}

// move applies a move, with a line about the pool in the history unless that is "". It does nothing if somebody asked
// for something else meanwhile: the next step sees what.
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

// health keeps the reason of a READY cluster: what is wrong with its pool, or nothing. It returns what was written
// into the history, "" if nothing was because the same was wrong before.
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
			news = "all daemons are there again"
		}
		return tx.Log(corral.ObjectCluster, int64(r.id), "health", news)
	})
	return news, err
}

// An attempt is one that may have workers.
type attempt struct {
	corral.Job
	cluster  corral.ClusterID
	hosts    int    // each of which runs a worker
	identity string // who its workers are to the pool; "" if they may be anybody
}

// attempts returns those of the cluster that may have workers: the live attempts of glideins that are not over.
func (r row) attempts(ctx context.Context, c corral.Cluster) (live []attempt, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) error {
		glideins, err := tx.Glideins(store.GlideinFilter{Cluster: r.id, Live: true, InBrief: true})
		live = attemptsOf(c, glideins)
		return err
	})
	return live, err
}

// attemptsOf returns the live attempts of glideins. In a pool of ours the workers of each show a token of their own, by
// which the collector knows them; in others all may have the same one, and may be anybody to us.
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

// addToken notes that a token was made, before anybody gets it.
func (r row) addToken(ctx context.Context, t corral.PoolToken) error {
	return r.db.Write(ctx, Actor, func(tx *store.Tx) error { return tx.AddPoolToken(t) })
}

// tokensOver returns the tokens of attempts that are over, which the pool may still take at now.
func (r row) tokensOver(ctx context.Context) (over []corral.PoolToken, now time.Time, err error) {
	err = r.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		over, err = tx.PoolTokensOver(r.id)
		return err
	})
	return over, now, err
}

// revoked records that the pool refuses tokens.
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
