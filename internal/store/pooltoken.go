package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/corral-pilot/corral"
)

// AddPoolToken notes that a token was made for an attempt, before anybody is given it.
func (t *Tx) AddPoolToken(p corral.PoolToken) error {
	_, err := t.exec("insert into pool_tokens (id, cluster_id, job_id, ends_at_ms) values (?, ?, ?, ?)",
		p.ID, p.Cluster, p.Attempt, at(&p.EndsAt))
	if err != nil {
		return fmt.Errorf("noting a pool's token: %w", err)
	}
	return nil
}

// PoolTokenOf returns the attempt's token that ends last, a NotFound error if it has none.
func (t *Tx) PoolTokenOf(attempt corral.JobID) (corral.PoolToken, error) {
	p := corral.PoolToken{Attempt: attempt}
	err := t.row("select id, cluster_id, ends_at_ms from pool_tokens where job_id = ? order by ends_at_ms desc, id limit 1",
		[]any{attempt}, &p.ID, &p.Cluster, at(&p.EndsAt))
	if errors.Is(err, sql.ErrNoRows) {
		return p, corral.Errorf(corral.NotFound, "attempt %d has no token of a pool", attempt)
	}
	return p, err
}

// PoolTokensOver lists the tokens that a cluster's pool must be told to refuse: those of attempts that have
// ended, which would still be good.
func (t *Tx) PoolTokensOver(cluster corral.ClusterID) ([]corral.PoolToken, error) {
	var over []corral.PoolToken
	err := t.rows(`
		select pool_tokens.id, job_id, ends_at_ms
		from pool_tokens join jobs on jobs.id = job_id
		where cluster_id = ? and revoked_at_ms is null and ends_at_ms > ? and jobs.state = 'ENDED'
		order by pool_tokens.id`, []any{cluster, at(&t.now)}, func(rows *sql.Rows) error {
		p := corral.PoolToken{Cluster: cluster}
		err := rows.Scan(&p.ID, &p.Attempt, at(&p.EndsAt))
		over = append(over, p)
		return err
	})
	return over, err
}

// RevokedPoolToken notes that the pool refuses the token.
func (t *Tx) RevokedPoolToken(id string) error {
	_, err := t.exec("update pool_tokens set revoked_at_ms = ? where id = ? and revoked_at_ms is null", at(&t.now), id)
	return err
}
