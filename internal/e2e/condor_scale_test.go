//go:build sites

package e2e

import (
	"testing"
	"time"
)

// A pool that is scaled has no worker until a job is submitted that needs one, and none some time after it has ended.
func TestScaledPool(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t)
	u.must("up")
	u.must("package", "build", "--from-debian", "trixie")
	u.must("cluster", "create", "mine", "--kind", "condor")
	u.must("site", "create", "here", "--contact", "local:", "--batch", "fork", "--wait")
	u.must("cluster", "scale", "mine", "--site", "here", "--max", "2", "--cpus", "2", "--walltime", "10m", "--idle", "5s")
	u.job()
	u.until("the workers to leave", 3*time.Minute, func() bool { return len(u.workers()) == 0 })
	u.must("down")
}
