//go:build sites && soak

package e2e

import (
	"testing"

	"github.com/corral-pilot/corral"
)

// The same on an HTCondor cluster, whose schedd is one more that may die.
func TestKillsCondor(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t)
	u.startPool(t)
	m := matrix{user: u.user, cluster: "mine", workers: 2, flags: []string{"--clustering", "horizontal=10"},
		glidein: []string{"--site", "here", "--cluster", "mine", "--cpus", "2", "--memory", "1GiB"}}
	m.play(
		cell{"worker", func(w corral.Worker, _ int) int { return w.PID }},
		cell{"pilot", func(w corral.Worker, _ int) int { return parent(parent(w.PID)) }},
		cell{"corrald", func(corral.Worker, int) int { return u.running() }},
		cell{"client", func(_ corral.Worker, client int) int { return client }},
		cell{"schedd", func(corral.Worker, int) int { return u.daemon("condor_schedd") }},
	)
	u.must("down")
}
