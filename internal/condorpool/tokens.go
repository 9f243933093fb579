package condorpool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
)

// Mint makes a token with which the workers of an attempt may join the cluster's pool, and notes it in the store
// before it returns. In a pool of ours it is the attempt's own and lives that long; in others it may be the
// one that was given for the pool. The error is Forbidden if there is none that workers may have.
func (p *Pools) Mint(ctx context.Context, cluster corral.ClusterID, attempt corral.JobID, lifetime time.Duration) (secret string, ends time.Time, err error) {
	k, c, tools, err := p.ready(ctx, cluster)
	if err != nil {
		return "", time.Time{}, err
	}
	var token condor.Token
	if pool := k.own(); pool != nil {
		token, err = pool.Mint(int64(attempt), lifetime)
	} else {
		token, err = k.fetch(ctx, tools, attempt, lifetime)
	}
	if err == nil && !token.Expires.After(time.Now()) {
		err = corral.Errorf(corral.Failed, "the token for it ended at %s", token.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		kind := corral.Unavailable
		if refused := (*condor.Refused)(nil); errors.As(err, &refused) {
			kind = corral.Failed
		}
		if corral.KindOf(err) == corral.Forbidden {
			kind = corral.Forbidden
		}
		return "", time.Time{}, corral.ErrorAt(kind, "cluster "+c.Name, "%w", err)
	}
	note := corral.PoolToken{ID: token.ID, Cluster: cluster, Attempt: attempt, EndsAt: token.Expires}
	if err := p.db.Write(ctx, Actor, func(tx *store.Tx) error { return tx.AddPoolToken(note) }); err != nil {
		return "", time.Time{}, err
	}
	return token.Secret(), token.Expires, nil
}

// attempts returns those of the cluster that may have workers.
func (k *keeper) attempts(ctx context.Context, c corral.Cluster) ([]attempt, error) {
	var live []attempt
	err := k.p.db.View(ctx, func(tx *store.Tx) error {
		glideins, err := tx.Glideins(store.GlideinFilter{Cluster: k.id, Live: true, InBrief: true})
		for _, g := range glideins {
			for _, j := range g.Live() {
				a := attempt{Job: j, cluster: k.id, hosts: g.Hosts}
				if !c.Attached {
					a.identity = condor.GlideinIdentity(int64(j.ID))
				}
				live = append(live, a)
			}
		}
		return err
	})
	return live, err
}

// liveFile is a part of the pool's configuration: which attempts' slots the negotiator may match.
func (k *keeper) liveFile() string { return filepath.Join(k.dir, "live.conf") }

// liveText admits slots that say they are of one of the attempts, and have shown its token. What a slot says of itself
// anybody can say; who it is, the collector writes into its ad.
func liveText(live []attempt) string {
	pairs := []string{`""`} // an empty list is not worth thinking about
	for _, a := range live {
		pairs = append(pairs, condor.FormatNew(fmt.Sprintf("%d %s", a.ID, a.identity)))
	}
	return fmt.Sprintf("NEGOTIATOR_SLOT_CONSTRAINT = member(strcat(CorralAttempt, \" \", AuthenticatedIdentity), { %s })\n", strings.Join(pairs, ", "))
}

// writeLive writes the file for a pool that is about to start.
func (k *keeper) writeLive(ctx context.Context, c corral.Cluster) error {
	live, err := k.attempts(ctx, c)
	if err != nil {
		return err
	}
	return k.replaceLive(liveText(live))
}

func (k *keeper) replaceLive(text string) error {
	aside := k.liveFile() + ".new"
	if err := os.WriteFile(aside, []byte(text), 0o600); err != nil {
		return err
	}
	if err := k.p.give(aside); err != nil {
		return err
	}
	return os.Rename(aside, k.liveFile())
}

// guardEvery bounds how often a pool reads its configuration again, however many attempts come and go. A worker needs longer
// than that to join.
const guardEvery = 500 * time.Millisecond

// guard has a pool of ours match slots of live attempts only, and refuse the tokens of those that are over. It returns when
// it has more to tell the pool, at the latest.
func (k *keeper) guard(ctx context.Context, live []attempt) (again time.Duration, err error) {
	pool := k.own()
	if pool == nil || k.sick {
		return healthIdle, nil
	}
	if wait := time.Until(k.told.Add(guardEvery)); wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if text := liveText(live); text != k.live {
		k.told = time.Now()
		if err := k.replaceLive(text); err != nil {
			return guardEvery, err
		}
		if _, err := pool.Tools().Run(ctx, nil, "condor_reconfig", "-daemon", "negotiator"); err != nil {
			return guardEvery, err
		}
		k.live = text
	}
	return healthIdle, k.revoke(ctx, pool)
}

// revoke has the pool refuse the tokens of attempts that are over, and notes that it does.
func (k *keeper) revoke(ctx context.Context, pool *condor.Pool) error {
	var (
		over []corral.PoolToken
		now  time.Time
	)
	err := k.p.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		over, err = tx.PoolTokensOver(k.id)
		return err
	})
	if err != nil || len(over) == 0 {
		return err
	}
	tokens := make([]condor.Token, len(over))
	for i, t := range over {
		tokens[i] = condor.Token{ID: t.ID, Expires: t.EndsAt}
	}
	k.told = time.Now()
	if err := pool.Revoke(ctx, now, tokens...); err != nil {
		return err
	}
	k.lg.Info("tokens revoked", "count", len(over))
	return k.p.db.Write(ctx, Actor, func(tx *store.Tx) error {
		for _, t := range over {
			if err := tx.RevokedPoolToken(t.ID); err != nil {
				return err
			}
		}
		return nil
	})
}
