package scale

import (
	"testing"

	"github.com/corral-pilot/corral"
)

func TestALookAtOneClusterForgetsNoSparePilotOfAnother(t *testing.T) {
	t.Parallel()
	k := &keeper{spare: map[corral.ClusterID]spares{}}
	k.remember(1, Decision{Spare: []corral.GlideinID{7}})
	since := k.spare[1][7]
	k.remember(2, Decision{})
	k.remember(1, Decision{Spare: []corral.GlideinID{7}})
	if since.IsZero() || !k.spare[1][7].Equal(since) {
		t.Errorf("spare since %v, want %v", k.spare[1][7], since)
	}
	k.remember(1, Decision{})
	if len(k.spare[1]) > 0 {
		t.Errorf("needed again, and yet spare: %v", k.spare[1])
	}
}
