//go:build sites && soak

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// A chain of tasks outlasts the two minutes that Slurm's queue gives a pilot. The plan has pilots take each other's
// place: from the first worker on there always is one, and no task is killed for a walltime.
func TestPlanOutlastsWalltimesOnSlurm(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm, err := gridsitetest.StartSlurm(nil, "PartitionName=brief Nodes=ALL DefMemPerCPU=100 MaxTime=00:02:00 State=UP")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := slurm.Stop(); err != nil {
			t.Error(err)
		}
	})
	sshd := u.behindSSH(slurm)
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", u.dir+"/far", "--queue", "brief",
		"--wait", "--timeout", "5m")
	tasks := steps(20, 12*time.Second)
	for i := range tasks[1:] {
		tasks[i+1].parents = []string{tasks[i].id}
	}
	file := u.workflow("chain", tasks...)
	id := u.must("plan", file, "--site", "hpc", "--objective", "cost", "--algorithm", "staircase", "-q")
	u.must("plan", "apply", id)
	run := u.must("run", file, "--label", "plan="+id, "--detach", "-q")
	u.until("a worker", 5*time.Minute, func() bool { return len(u.workers()) > 0 })
	looks := 0
	u.until("the run's end", 15*time.Minute, func() bool {
		looks++
		if len(u.workers()) == 0 && u.run(run).State == corral.RunRunning {
			t.Errorf("look %d finds no worker", looks)
		}
		return u.run(run).State != corral.RunRunning
	})
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	all := read[[]corral.Glidein](u, "glidein", "list", "--all", "-l", "plan="+id)
	slices.SortFunc(all, func(a, b corral.Glidein) int { return int(a.ID - b.ID) })
	if len(all) < 3 {
		t.Errorf("%d pilots for a chain of four minutes", len(all))
	}
	for i, g := range all {
		g = u.glidein(fmt.Sprint(g.ID))
		t.Logf("glidein %d follows %d, wanted %s: %+v", g.ID, g.Follows, g.NotBefore, g.Attempts)
		if i > 0 && g.Follows != all[i-1].ID {
			t.Errorf("glidein %d follows %d, want %d", g.ID, g.Follows, all[i-1].ID)
		}
	}
	u.must("plan", "release", id, "--wait")
	u.must("down")
}
