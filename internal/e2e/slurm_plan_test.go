//go:build sites

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A run plans its own pilots on a Slurm behind ssh: more hosts than the Slurm has nodes, so that one pilot cannot have all,
// and none is left when the run is over.
func TestPlanOnSlurm(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.behindSSH(slurm), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait",
		"--timeout", "5m")
	tasks := steps(12, 2*time.Second)
	for i := range tasks {
		if i > 0 && i < 11 {
			tasks[i].parents = []string{tasks[0].id}
			tasks[11].parents = append(tasks[11].parents, tasks[i].id)
		}
	}
	file := u.workflow("steps", tasks...)
	run := u.must("run", file, "--auto", "--site", "hpc", "--objective", "makespan", "-q")
	got := u.run(run)
	if got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	wantOutputs(t, got.Dir, len(tasks))
	id := got.Labels["plan"]
	all := read[[]corral.Glidein](u, "glidein", "list", "--all", "-l", "plan="+id)
	if len(all) == 0 || slices.ContainsFunc(all, func(g corral.Glidein) bool { return g.SiteName != "hpc" }) {
		t.Errorf("pilots of the plan: %+v, want them on hpc", all)
	}
	u.must("plan", "release", id, "--wait")
	// A pilot says itself that it has ended; Slurm notices a moment later.
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	u.must("down")
	u.wantNothingAt(slurm, sshd, root)
}
