package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// Token creates a token that a caller requests, with at most the caller's rights. The token becomes valid when the
// transaction is committed.
func Token(tx *store.Tx, who access.Caller, t corral.Token) (corral.Token, error) {
	return admitted(tx, claim{
		owner: t.Owner, quotas: []string{"tokens"},
		usable: func() error { return access.CheckMint(who, t) },
		taken:  func() error { return tx.FreeToken(t) },
	}, func() (corral.Token, error) { return tx.CreateToken(t) })
}
