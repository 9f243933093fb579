package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// Token makes a token known that a caller asks for; it is good as soon as the transaction is committed. It may do no
// more than the caller's own.
func Token(tx *store.Tx, who access.Caller, t corral.Token) (corral.Token, error) {
	return admitted(tx, claim{
		owner: t.Owner, quotas: []string{"tokens"},
		uses:  func() error { return access.CheckMint(who, t) },
		taken: func() error { return tx.FreeToken(t) },
	}, func() (corral.Token, error) { return tx.CreateToken(t) })
}
