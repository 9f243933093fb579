package condorpool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// How often the daemons are asked for.
const (
	healthEvery = 5 * time.Second  // while attempts are alive, in a pool of ours
	healthIdle  = 30 * time.Second // otherwise: a question costs the pool and us some 40 ms of a processor
	sickEvery   = time.Second      // while one is missing
)

// askTime is how long a pool may take to answer a question.
const askTime = 10 * time.Second

// keep looks after a READY cluster.
func (k *keeper) keep(ctx context.Context, c corral.Cluster) (time.Duration, error) {
	if _, ok := k.commands(); !ok {
		if err := k.adopt(ctx, c); err != nil {
			return healthIdle, k.note(ctx, sentence(err))
		}
	}
	if err := k.check(ctx, c); err != nil {
		return 0, err
	}
	live, err := k.attempts(ctx, c)
	if err != nil {
		return 0, err
	}
	told, err := k.guard(ctx, live)
	if err != nil && ctx.Err() == nil {
		k.lg.Warn("telling the pool which attempts are alive failed", "err", err)
		k.sick = true // its health is asked for next; then this is tried again
	}
	return min(k.look(ctx, c, live), told, k.untilCheck()), nil
}

func (k *keeper) untilCheck() time.Duration {
	every := healthIdle
	switch {
	case k.sick && k.own() != nil:
		every = sickEvery
	case k.sick, k.own() != nil && len(k.view.live) > 0:
		every = healthEvery
	}
	return max(time.Until(k.checked.Add(every)), time.Millisecond)
}

// check asks for the daemons from time to time, starts a pool again whose master has died, and keeps the reason of the
// cluster's row. The master starts the other daemons again.
func (k *keeper) check(ctx context.Context, c corral.Cluster) error {
	if k.untilCheck() > time.Millisecond {
		return nil
	}
	wrong := k.wrong(ctx, c)
	if ctx.Err() != nil {
		return nil
	}
	k.checked, k.sick = time.Now(), wrong != ""
	return k.note(ctx, wrong)
}

// wrong returns what is wrong with the pool, "" if nothing is.
func (k *keeper) wrong(ctx context.Context, c corral.Cluster) string {
	pool := k.own()
	if pool == nil {
		return k.wrongElsewhere(ctx, c)
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	h, err := pool.Health(asking)
	switch {
	case err != nil:
		return "the collector does not say who is there: " + sentence(err)
	case h.OK():
		return ""
	case h.Master != 0:
		return fmt.Sprintf("HTCondor starts again what is missing: %s", strings.ToLower(strings.Join(h.Missing, ", ")))
	}
	if err := k.note(ctx, "the pool's master does not run; it is being started again"); err != nil {
		return sentence(err)
	}
	if err := k.revive(ctx); err != nil {
		return "the pool does not start again: " + sentence(err)
	}
	return ""
}

// revive starts a pool whose master has died.
func (k *keeper) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return k.own().Start(ctx)
}

// note keeps the reason of a READY cluster: what is wrong with its pool, or nothing.
func (k *keeper) note(ctx context.Context, wrong string) error {
	err := k.p.db.Write(ctx, Actor, func(tx *store.Tx) error {
		c, err := tx.Cluster(k.id)
		if err != nil || c.State != corral.ClusterReady || c.Reason == wrong {
			return err
		}
		if _, err := tx.SetCluster(k.id, func(c *corral.Cluster) { c.Reason = wrong }); err != nil {
			return err
		}
		if wrong == "" {
			wrong = "all daemons are there again"
		}
		k.lg.Info("health of the pool", "is", wrong)
		return tx.Log(corral.ObjectCluster, int64(k.id), "health", wrong)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
