package worldstate

import (
	"fmt"

	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
)

// Record applies an action that only changes the stored state of a glidein.
func Record(tx *store.Tx, a reconcile.Action) error {
	switch a := a.(type) {
	case reconcile.AskGlidein:
		return store.Done(tx.AskGlidein(a.Glidein, a.Ask, a.Reason))
	case reconcile.Retime:
		return tx.RetimeGlidein(a.Glidein, a.At, a.Reason)
	case reconcile.Settle:
		return store.Done(tx.SettleGlidein(a.Glidein, a.Lack))
	}
	return fmt.Errorf("action %T does more than change the record of a glidein", a) // unreachable
}
