//go:build sites && soak

package e2e

import (
	"testing"
	"time"
)

// A minute without the site's sshd costs a run on its workers nothing.
func TestSlurmSurvivesMinuteWithoutSSHD(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.eightWorkers(slurm)
	u.withoutSSHD(sshd, time.Minute, steps(320, 2*time.Second)...)
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.wantNothingAt(slurm, sshd, root)
	u.must("down")
}
