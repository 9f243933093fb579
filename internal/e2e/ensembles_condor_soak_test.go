//go:build sites && soak

package e2e

import (
	"testing"
	"time"
)

// The same on an HTCondor cluster, whose pilots take longer to start up, and are paid for it; tasks stream.
func TestEnsembleCondor(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t, "CORRALD_LEASE=5s")
	u.startPool(t)
	u.playEnsemble(staged{budget: 0.05, deadline: 179 * time.Second, takes: 4 * time.Second, delay: 15 * time.Second,
		flags: []string{"--cluster", "mine", "--site", "here", "--stream"}})
	u.must("down")
}
