package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

func startSlurm(t testing.TB, environment ...string) *gridsitetest.Slurm {
	t.Helper()
	slurm, err := gridsitetest.StartSlurm(environment)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := slurm.Stop(); err != nil {
			t.Error(err)
		}
	})
	return slurm
}

// queue returns what of a Slurm's jobs has not ended.
func queue(t testing.TB, slurm *gridsitetest.Slurm) string {
	t.Helper()
	out, err := slurm.Command("squeue", "--noheader").CombinedOutput()
	if err != nil {
		t.Fatalf("squeue: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// behindSSH starts the head node of a Slurm, which the user can log in to.
func (u *user) behindSSH(slurm *gridsitetest.Slurm) *gridsitetest.SSHD {
	u.t.Helper()
	sshd := gridsitetest.StartSSHD(u.t, "SetEnv "+strings.Join(slurm.Environ(), " "))
	if err := os.Symlink(sshd.SSH(""), u.dir+"/.ssh"); err != nil {
		u.t.Fatal(err)
	}
	return sshd
}

// Three pilots of two nodes each and one of one node on a Slurm behind ssh, and one on this machine, do one workflow together.
func TestSlurmSite(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := startSlurm(t)
	sshd := u.behindSSH(slurm)
	root := u.dir + "/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait", "--timeout", "3m")
	for _, hosts := range []string{"2", "2", "2", "1"} {
		u.must("glidein", "create", "--site", "hpc", "--hosts", hosts, "--walltime", "20m")
	}
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "1m")
	u.until("eight workers", 2*time.Minute, func() bool { return len(u.workers()) == 8 })
	hosts := map[string]bool{}
	for _, w := range u.workers() {
		hosts[w.Host] = true
	}
	if len(hosts) != 5 { // seven cpus do not fit into three nodes
		t.Errorf("workers of %v, want of this machine and four nodes by Slurm's names", hosts)
	}
	run := u.must("run", u.workflow("steps", steps(48, 500*time.Millisecond)...), "-q")
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	wantOutputs(t, got.Dir, 48)
	for _, w := range u.workers() {
		if w.DoneTasks == 0 {
			t.Errorf("worker %s on %s has done nothing", w.ID, w.Host)
		}
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "2m")
	if left := queue(t, slurm); left != "" {
		t.Errorf("left in the queue: %s", left)
	}
	for _, dir := range []string{root, filepath.Join(sshd.Dir, "home")} {
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the root is still there: %v", err)
	}
	u.must("down")
}

// The same on an HTCondor pool: its glideins join from each node of the batch jobs, and from this machine.
func TestCondorSlurmSite(t *testing.T) {
	t.Parallel()
	slurm := startSlurm(t)
	environ := slurm.Environ()
	u := newCondorUser(t)
	u.env = append(u.env, environ[1], "PATH="+programs+plain+":"+strings.TrimPrefix(environ[0], "PATH="))
	u.startPool(t)
	root := filepath.Join(u.open, "far")
	u.must("site", "create", "hpc", "--contact", "local:", "--batch", "slurm", "--root", root, "--wait", "--timeout", "3m")
	for range 2 {
		u.must("glidein", "create", "--site", "hpc", "--cluster", "mine", "--hosts", "2", "--walltime", "20m", "--wait", "--timeout", "3m")
	}
	u.must("glidein", "create", "--site", "here", "--cluster", "mine", "--wait", "--timeout", "2m")
	workers := read[[]corral.Worker](u.user, "cluster", "workers", "mine")
	hosts := map[string]bool{}
	for _, w := range workers {
		hosts[w.Host] = true
	}
	if len(workers) != 5 || len(hosts) < 3 {
		t.Errorf("%d workers of %v, want five of this machine and two nodes at least", len(workers), hosts)
	}
	run := u.must("run", u.workflow("steps", steps(20, 500*time.Millisecond)...), "--cluster", "mine", "-q")
	if got := u.run(run); got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "2m")
	if left := queue(t, slurm); left != "" {
		t.Errorf("left in the queue: %s", left)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the root is still there: %v", err)
	}
	u.must("down")
}
