package store

import (
	"fmt"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// usedOf maps each of access.Quotas to the query that counts an owner's objects. Each query reads only an index or a
// few rows; where SQLite would choose to read all of an owner's rows, the query names the index. The second argument
// is the time, if the query needs it.
var usedOf = map[string]string{
	"sites":    "select count(*) from sites where owner = ? and state <> 'DELETED'",
	"clusters": "select count(*) from clusters where owner = ? and state <> 'DELETED'",
	"glideins": "select count(*) from glideins indexed by glideins_open " +
		"where owner = ? and state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING')",
	"runs": "select count(*) from runs indexed by runs_kept where owner = ? and state <> 'DELETED'",
	"runs-open": "select count(*) from runs indexed by runs_kept " +
		"where owner = ? and state in ('RUNNING', 'CANCELLING') and state <> 'DELETED'",
	"plans":     "select count(*) from plans where owner = ? and state <> 'DELETED'",
	"profiles":  "select count(*) from profiles where owner = ? and state <> 'DELETED'",
	"ensembles": "select count(*) from ensembles where owner = ? and state <> 'DELETED'",
	"tokens": "select count(*) from tokens where owner = ? and state <> 'REVOKED' and " +
		"(expires_at_ms is null or expires_at_ms > ?)",
}

// Limit sets the maximum numbers of objects that an owner may have from now on; existing objects are kept. It is called
// before the first transaction. Without it there are no limits.
func (d *DB) Limit(most access.Most) { d.most = most }

// Room returns a Forbidden error if the given number of additional objects would exceed an owner's limit.
// internal/work/admit calls it in the transaction that creates an object, so that two simultaneous requests cannot both
// get the last place.
func (t *Tx) Room(quota, owner string, more int) error {
	if t.most[quota] <= 0 || access.Unlimited(owner) {
		return nil
	}
	args := []any{owner}
	if quota == "tokens" {
		args = append(args, t.now.UnixMilli())
	}
	var has int
	if err := t.row(usedOf[quota], args, &has); err != nil {
		return fmt.Errorf("counting the %s of %s: %w", quota, owner, err)
	}
	return t.most.Check(quota, owner, has, more)
}
