//go:build sites && soak

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// Pilots of two minutes that overlap serve a run which outlasts them: once there is a worker there always is, no task is
// killed for a walltime, and the site is never held. Beside them a glidein is resubmitted three times, and Slurm's
// accounts know four jobs of it.
func TestOverlapOnSlurm(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := startSlurm(t, "ACCOUNTING=yes")
	sshd := u.behindSSH(slurm)
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", u.dir+"/far", "--wait", "--timeout", "5m")
	u.must("cluster", "create", "other", "--kind", "embedded")
	thrice := u.must("glidein", "create", "--site", "hpc", "--cluster", "other", "--walltime", "1m", "--resubmit", "3", "-q")
	id := u.must("glidein", "create", "--site", "hpc", "--walltime", "2m", "--overlap", "20s", "--resubmit", "forever", "--wait", "--timeout", "5m", "-q")
	u.wantNext(id, "attempt 2 is submitted not before", "resubmit forever, overlapping attempt 1 by 20s; nine of ten attempts at the site wait")

	run := u.must("run", u.workflow("steps", steps(75, 4*time.Second)...), "--detach", "-q")
	looks, generations := 0, 0
	u.until("the run's end", 15*time.Minute, func() bool {
		looks++
		if len(u.workers()) == 0 {
			t.Errorf("look %d finds no worker: %+v", looks, u.glidein(id).Attempts)
		}
		g := u.glidein(id)
		if live := len(g.Live()); live == 0 || live > 2 {
			t.Errorf("%d generations are alive: %+v", live, g.Attempts)
		}
		generations = max(generations, len(g.Attempts))
		return u.run(run).State != corral.RunRunning
	})
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	if t.Logf("%d looks at %d generations", looks, generations); generations < 3 {
		t.Errorf("%d generations are too few", generations)
	}
	for _, a := range u.glidein(id).Attempts {
		if a.State == corral.JobEnded && (a.Outcome != corral.OutcomeExpired || a.Workers != 1) {
			t.Errorf("attempt %d of glidein %s: %s with %d workers: %s", a.Number, id, a.Outcome, a.Workers, a.Reason)
		}
	}
	if history := u.must("glidein", "history", id); strings.Contains(history, "circuit breaker") {
		t.Errorf("the site was held:\n%s", history)
	}
	u.must("glidein", "remove", id, "--wait", "--timeout", "5m")
	u.wantFourJobs(slurm, thrice)
	u.must("down")
}

// wantNext checks what corral says that comes next for a glidein.
func (u *user) wantNext(id string, words ...string) {
	u.t.Helper()
	u.until("attempt 1 to be seen running", time.Minute, func() bool { return u.glidein(id).Attempts[0].State == corral.JobRunning })
	shown := strings.Join(strings.Fields(u.must("glidein", "show", id)), " ")
	for _, want := range words {
		if !strings.Contains(shown, want) {
			u.t.Errorf("no %q in %s", want, shown)
		}
	}
}

// wantFourJobs checks that a glidein ends after three resubmissions, and that each of its jobs is one of Slurm's, and none
// is beside them.
func (u *user) wantFourJobs(slurm *gridsitetest.Slurm, id string) {
	u.t.Helper()
	u.must("glidein", "wait", id, "--for", "FINISHED", "--timeout", "10m")
	g := u.glidein(id)
	if !strings.Contains(g.Reason, "all 3 resubmissions used") || len(g.Attempts) != 4 {
		u.t.Errorf("%d attempts, and it says %q", len(g.Attempts), g.Reason)
	}
	var want []string
	for _, a := range g.Attempts {
		want = append(want, a.Tag)
	}
	slices.Sort(want)
	var jobs []string
	u.until("Slurm's accounts of them", time.Minute, func() bool { // the daemon that keeps them hears of an end later
		out, err := slurm.Command("sacct", "-n", "-P", "-X", "-o", "JobName,State", "--name", strings.Join(want, ",")).CombinedOutput()
		if err != nil {
			u.t.Fatalf("sacct: %v: %s", err, out)
		}
		jobs = strings.Fields(string(out))
		return !strings.Contains(string(out), "RUNNING")
	})
	slices.Sort(jobs)
	for i := range want {
		want[i] += "|COMPLETED"
	}
	if fmt.Sprint(jobs) != fmt.Sprint(want) {
		u.t.Errorf("Slurm's accounts have %v, want %v", jobs, want)
	}
}

// A pilot of three nodes goes on when Slurm takes one of them for lost, and says which; the tasks that ran there run
// elsewhere, without a retry.
func TestPilotOutlivesANode(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := startSlurm(t)
	sshd := u.behindSSH(slurm)
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", u.dir+"/far", "--wait", "--timeout", "5m")
	id := u.must("glidein", "create", "--site", "hpc", "--hosts", "3", "--cpus", "2", "--walltime", "20m", "--wait", "--timeout", "5m", "-q")
	run := u.must("run", u.workflow("steps", u.behind("go", 6, steps(18, time.Second))...), "--detach", "-q")
	u.until("tasks to be done", time.Minute, func() bool { return u.run(run).Tasks.Done >= 6 })
	lost := u.workers()[2].Host
	if out, err := slurm.Command("scontrol", "update", "NodeName="+lost, "State=DOWN", "Reason=test").CombinedOutput(); err != nil {
		t.Fatalf("scontrol: %v: %s", err, out)
	}
	u.until("the node to be named", 5*time.Minute, func() bool {
		g := u.glidein(id)
		return strings.Contains(g.Losses(), "2 of 3 hosts work; node "+lost+": ") && g.WorkersNow == 2
	})
	u.let("go")
	u.must("runs", "wait", run)
	if got := u.run(run); got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	if g := u.glidein(id); len(g.Attempts) != 1 || g.Attempts[0].State != corral.JobRunning {
		t.Errorf("its attempts are %+v, want one that runs", g.Attempts)
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.must("down")
}
