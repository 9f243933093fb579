package store

import (
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// The workers of an attempt join an HTCondor pool with a token. The table stores not the token but its id and expiry
// time: enough to replace a token before it expires while its attempt is queued, and to revoke it at the pool when
// the attempt ends before the token expires.

// AddPoolToken records that a token was created for an attempt, before the token is handed out. If an attempt gets
// the same token again, it is recorded once. Tokens that need neither be revoked nor replaced are deleted.
func (t *Tx) AddPoolToken(p corral.PoolToken) error {
	_, err := t.exec(`
		delete from pool_tokens
		where ends_at_ms <= ? and job_id in (select id from jobs where state = 'ENDED')`, at(&t.now))
	if err != nil {
		return fmt.Errorf("forgetting tokens that are over: %w", err)
	}
	_, err = t.exec(`
		insert into pool_tokens (id, cluster_id, job_id, ends_at_ms) values (?, ?, ?, ?)
		on conflict (id) do update set ends_at_ms = excluded.ends_at_ms`,
		p.ID, p.Cluster, p.Attempt, at(&p.EndsAt))
	return wrap.Errorf(err, "noting a pool's token")
}

// PoolTokensWaiting lists the tokens of a site's queued attempts, the first to expire first.
func (t *Tx) PoolTokensWaiting(site corral.SiteID) ([]corral.PoolToken, error) {
	return t.poolTokens(`
		where jobs.site_id = ? and jobs.state <> 'ENDED' and jobs.state in ('SUBMITTED', 'QUEUED')
		order by ends_at_ms, pool_tokens.id`, site)
}

// PoolTokensOver lists the tokens that a cluster's pool must revoke: tokens of ended attempts that have not expired.
func (t *Tx) PoolTokensOver(cluster corral.ClusterID) ([]corral.PoolToken, error) {
	return t.poolTokens(`
		where cluster_id = ? and revoked_at_ms is null and ends_at_ms > ? and jobs.state = 'ENDED'
		order by pool_tokens.id`, cluster, at(&t.now))
}

// poolTokens lists tokens, each joined with its attempt.
func (t *Tx) poolTokens(which string, args ...any) ([]corral.PoolToken, error) {
	query := `
		select pool_tokens.id, cluster_id, job_id, ends_at_ms
		from pool_tokens
		join jobs on jobs.id = job_id` + which
	return collect(t, query, args, func(p *corral.PoolToken) []any {
		return []any{&p.ID, &p.Cluster, &p.Attempt, at(&p.EndsAt)}
	})
}

// RevokedPoolToken records that the pool has revoked the token.
func (t *Tx) RevokedPoolToken(id string) error {
	_, err := t.exec("update pool_tokens set revoked_at_ms = ? where id = ? and revoked_at_ms is null", at(&t.now), id)
	return err
}
