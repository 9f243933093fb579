package scale

import (
	"testing"
	"time"

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

func TestPilotsThatOneHiccupEndsCountAsOneFailure(t *testing.T) {
	t.Parallel()
	failed := func(asked, ended time.Duration) corral.Glidein {
		return corral.Glidein{State: corral.GlideinFailed, CreatedAt: now.Add(asked), UpdatedAt: now.Add(ended)}
	}
	drained := failed(3*time.Minute, 4*time.Minute)
	drained.Asked = corral.AskDrain
	f := failures{}.and(failed(0, time.Minute)).and(failed(time.Second, time.Minute)).and(drained)
	if f.n != 1 {
		t.Errorf("%d failures, want 1", f.n)
	}
	if f = f.and(failed(2*time.Minute, 3*time.Minute)); f.n != 2 {
		t.Errorf("%d failures, want 2: the second pilot was asked for after the first failure", f.n)
	}
	if f = f.and(corral.Glidein{State: corral.GlideinFinished}); f.n != 0 {
		t.Errorf("%d failures after a pilot that worked", f.n)
	}
}
