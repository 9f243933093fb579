package pilot

import (
	"testing"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// The reason with which a worker of corrald's own pool leaves is one that an attempt's decisions understand.
func TestReasonsToLeave(t *testing.T) {
	t.Parallel()
	for said, want := range map[worker.Reason]attempt.Left{
		worker.Drained: attempt.LeftDrained, worker.Expired: attempt.LeftExpired,
		worker.Asked: attempt.LeftAsked, worker.Refused: attempt.LeftRefused,
	} {
		if got := attempt.Left(said); got != want {
			t.Errorf("a worker says %q, an attempt understands %q", got, want)
		}
	}
}
