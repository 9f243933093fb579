package engine

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/reconcile"
)

func TestOrderTellsPilotsOfAnAttachedPool(t *testing.T) {
	t.Parallel()
	for _, attached := range []bool{false, true} {
		need := reconcile.Need{Cluster: corral.Cluster{Name: "theirs", Attached: attached}}
		if got := condorOrder(corral.Site{}, corral.Glidein{}, corral.Job{}, need); got.Attached != attached {
			t.Errorf("the order for a pool says attached: %v, want %v", got.Attached, attached)
		}
	}
}
