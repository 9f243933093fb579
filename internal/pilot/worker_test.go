package pilot

import (
	"testing"

	"github.com/corral-pilot/corral/internal/pilot/attempt"
	"github.com/corral-pilot/corral/pool"
)

// What a worker of corrald's own pool says when it leaves is what an attempt's decisions understand.
func TestReasonsToLeave(t *testing.T) {
	t.Parallel()
	for said, want := range map[pool.LeaveReason]attempt.Left{
		pool.LeaveDrained: attempt.LeftDrained, pool.LeaveExpired: attempt.LeftExpired,
		pool.LeaveAsked: attempt.LeftAsked, pool.LeaveRefused: attempt.LeftRefused,
	} {
		if got := attempt.Left(said); got != want {
			t.Errorf("a worker says %q, an attempt understands %q", got, want)
		}
	}
}
