package sim_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan/sim"
)

// The returned walltime leaves the requested time for tasks, and hardly more.
func TestWalltimeLeavesTimeForTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tasks := time.Duration(rapid.Int64Range(1, int64(400*24*time.Hour)).Draw(r, "tasks"))
		walltime := sim.WalltimeFor(tasks)
		left := matching.CutAfter(walltime - jobfiles.Reserve(walltime))
		if left < tasks || left > tasks+time.Microsecond {
			r.Fatalf("a walltime of %s leaves %s of %s", walltime, left, tasks)
		}
	})
}
