//go:build sites

package e2e

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// startSlurm starts a Slurm of the test's own, which the test may configure, break and stop.
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

// slurms are the Slurms that no test uses at present.
var slurms struct {
	sync.Mutex
	free []*gridsitetest.Slurm
}

// useSlurm returns a Slurm with the default nodes that the test has for itself until it ends: one that an earlier test
// has left with an empty queue, or a new one. The test neither configures it nor stops its daemons.
func useSlurm(t testing.TB) *gridsitetest.Slurm {
	t.Helper()
	slurms.Lock()
	defer slurms.Unlock()
	var slurm *gridsitetest.Slurm
	if n := len(slurms.free); n > 0 {
		slurm, slurms.free = slurms.free[n-1], slurms.free[:n-1]
	} else {
		var err error
		if slurm, err = gridsitetest.StartSlurm(nil); err != nil {
			t.Fatal(err)
		}
		atEnd(slurm.Stop)
	}
	t.Cleanup(func() {
		if t.Failed() || !emptied(t, slurm) {
			return // it is stopped with the others
		}
		slurms.Lock()
		defer slurms.Unlock()
		slurms.free = append(slurms.free, slurm)
	})
	return slurm
}

// emptied cancels the jobs that a test has left, and reports whether the queue is empty and all nodes are idle after it.
func emptied(t testing.TB, slurm *gridsitetest.Slurm) bool {
	jobs, err := slurm.Command("squeue", "--noheader", "--format=%A").Output()
	if err != nil {
		t.Logf("squeue: %v", err)
		return false
	}
	if left := strings.Fields(string(jobs)); len(left) > 0 {
		if out, err := slurm.Command("scancel", left...).CombinedOutput(); err != nil {
			t.Logf("scancel: %v: %s", err, out)
			return false
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		states, err := slurm.Command("sinfo", "--noheader", "--Node", "--format=%T").Output()
		if err == nil && queue(t, slurm) == "" && strings.Trim(string(states), "idle\n") == "" {
			return true
		}
	}
	return false
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

// wantNothingAt checks that a Slurm has no job, and its head node no file of ours.
func (u *user) wantNothingAt(slurm *gridsitetest.Slurm, sshd *gridsitetest.SSHD, root string) {
	u.t.Helper()
	if left := queue(u.t, slurm); left != "" {
		u.t.Errorf("left in the queue: %s", left)
	}
	for _, dir := range []string{root, filepath.Join(sshd.Dir, "home")} {
		if left := files(u.t, dir); len(left) != 0 {
			u.t.Errorf("left in %s: %v", dir, left)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		u.t.Errorf("the root is still there: %v", err)
	}
}

// wantShared checks that each of the workers did tasks of the run.
func (u *user) wantShared(run string, workers []corral.Worker) {
	u.t.Helper()
	done := map[string]int{}
	for _, k := range read[[]api.TaskStatus](u, "runs", "tasks", run) {
		worker, _, _ := strings.Cut(k.Worker, "+") // behind it is the number of a worker job
		done[worker]++
	}
	for _, w := range workers {
		if done[w.ID] == 0 {
			u.t.Errorf("worker %s of glidein %d on %s has done none of the tasks: %v", w.ID, w.Glidein, w.Host, done)
		}
	}
}

// withoutSSHD has a run go on while the site's sshd is dead, for so long at least: all workers do tasks of it, no pilot is
// lost or doubled, and the site says what is the matter.
func (u *user) withoutSSHD(sshd *gridsitetest.SSHD, lasts time.Duration, tasks ...task) {
	u.t.Helper()
	workers := u.workers()
	run := u.must("run", u.workflow("steps", u.behind("go", len(tasks)/2, tasks)...), "--detach", "-q")
	done := func() int { return u.run(run).Tasks.Done }
	u.until("some tasks are done", time.Minute, func() bool { return done() >= 4 })
	before, over := done(), time.After(lasts)
	sshd.Stop()
	u.let("go")
	u.until("the site to say so", time.Minute, func() bool {
		return strings.Contains(u.must("site", "list"), "unreachable") && strings.Contains(u.site("hpc").Trouble.Why, "refused")
	})
	u.until("tasks to go on", time.Minute, func() bool { return done() >= before+8 })
	<-over
	if s := u.site("hpc"); s.State != corral.SiteReady || s.Trouble.Why == "" {
		u.t.Errorf("without its sshd the site is %s: %+v", s.State, s.Trouble)
	}
	after := done()
	u.t.Logf("%d tasks were done before, %d after", before, after)
	if now := u.workers(); pids(now) != pids(workers) {
		u.t.Errorf("the workers were %v, and are %v", workers, now)
	}
	sshd.Start(u.t)
	u.until("the site to be there again", 2*time.Minute, func() bool { return u.site("hpc").Trouble == corral.SiteTrouble{} })
	u.must("runs", "wait", run)
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		u.t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	wantOutputs(u.t, got.Dir, len(tasks))
	u.wantShared(run, workers)
	u.wantAttemptsThatRun()
}

func (u *user) site(name string) corral.Site {
	u.t.Helper()
	return read[corral.Site](u, "site", "show", name)
}

// Three pilots of two nodes each and one of one node on a Slurm behind ssh, and one on this machine, do one workflow
// together, whatever becomes of the sshd.
func TestSlurmSite(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.eightWorkers(slurm)
	hosts := map[string]bool{}
	for _, w := range u.workers() {
		hosts[w.Host] = true
	}
	if len(hosts) != 5 { // seven cpus do not fit into three nodes
		t.Errorf("workers of %v, want of this machine and four nodes by Slurm's names", hosts)
	}
	u.withoutSSHD(sshd, 0, steps(72, 200*time.Millisecond)...)
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.wantNothingAt(slurm, sshd, root)
	u.must("down")
}

// eightWorkers has seven on a Slurm behind ssh, in pilots of two nodes and of one, and one here.
func (u *user) eightWorkers(slurm *gridsitetest.Slurm) (sshd *gridsitetest.SSHD, root string) {
	u.t.Helper()
	sshd, root = u.behindSSH(slurm), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait", "--timeout", "5m")
	for _, hosts := range []string{"2", "2", "2", "1"} {
		u.must("glidein", "create", "--site", "hpc", "--hosts", hosts, "--walltime", "20m")
	}
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "5m")
	u.until("eight workers", 2*time.Minute, func() bool { return len(u.workers()) == 8 })
	return sshd, root
}

// The same on an HTCondor pool, whose jobs tasks are, and into whose worker jobs they stream. One pilot has GPUs.
func TestCondorSlurmSite(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t)
	slurm := useSlurm(t)
	sshd := u.behindSSH(slurm)
	root := filepath.Join(u.open, "far")
	u.timed("up", func() { u.upAsOwner(); u.startPool(t) })
	u.must("site", "create", "hpc", "--contact", "ssh://"+login(t)+"@127.0.0.1:"+sshd.Port, "--batch", "slurm", "--root", root)
	var glideins []string
	for _, shape := range [][]string{{"--cpus", "2", "--gpus", "2"}, {"--hosts", "2"}, {"--hosts", "2"}} {
		create := []string{"glidein", "create", "--site", "hpc", "--cluster", "mine", "--memory", "256MiB", "--walltime", "20m", "-q"}
		glideins = append(glideins, u.must(append(create, shape...)...))
	}
	glideins = append(glideins, u.must("glidein", "create", "--site", "here", "--cluster", "mine", "-q"))
	u.timed("workers", func() {
		for _, id := range glideins {
			u.must("glidein", "wait", id, "--timeout", "5m")
		}
	})
	workers := u.workers()
	if len(workers) != 6 {
		t.Errorf("%d workers, want six with seven cpus: %+v", len(workers), workers)
	}
	u.timed("run", func() { u.wantShared(u.meet("jobs", 7, 0), workers) })
	u.timed("streamed run", func() { u.wantShared(u.meet("streamed", 7, 0, "--stream"), workers) })
	u.timed("streamed run that needs GPUs", func() { u.meet("gpus", 2, 1, "--stream") })
	if devices := []string{u.content("gpus/device.t000"), u.content("gpus/device.t001")}; !slices.Equal(slices.Sorted(slices.Values(devices)), []string{"0", "1"}) {
		t.Errorf("two tasks at once have the GPUs %q, want one each of 0 and 1", devices)
	}
	u.timed("down", func() { u.must("down") })
	u.wantNothingAt(slurm, sshd, root)
}

// meet runs tasks with so many GPUs each that end when all of them have begun, with files in a folder of this name. Each
// writes there which GPUs it has.
func (u *condorUser) meet(name string, tasks, gpus int, flags ...string) (run string) {
	u.t.Helper()
	dir := filepath.Join(u.open, name)
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		u.t.Fatal(err)
	}
	all := meeting(0, tasks, dir)
	for i := range all {
		all[i].gpus = gpus
		all[i].script = fmt.Sprintf("echo $CUDA_VISIBLE_DEVICES >%s/device.%s; ", dir, all[i].id) + all[i].script
	}
	run = u.must(append([]string{"run", u.workflow(name, all...), "--cluster", "mine", "-q"}, flags...)...)
	got := u.run(run)
	if got.State != corral.RunSucceeded {
		u.t.Errorf("run %s is %s: %s", name, got.State, got.Reason)
	}
	wantOutputs(u.t, got.Dir, tasks)
	return run
}

// behindSSH is that of a user, for whoever has the pool: here and there nobody is root, whose jobs HTCondor refuses.
func (u *condorUser) behindSSH(slurm *gridsitetest.Slurm) *gridsitetest.SSHD {
	u.t.Helper()
	id := owner(u.t)
	lines := []string{"SetEnv " + strings.Join(slurm.Environ(), " ")}
	if id != nil {
		lines = append(lines, fmt.Sprintf(`ForceCommand exec setpriv --reuid=%d --regid=%d --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"`, id.Uid, id.Gid))
	}
	sshd := gridsitetest.StartSSHD(u.t, lines...)
	ssh := filepath.Join(u.user.dir, ".ssh")
	if err := os.CopyFS(ssh, os.DirFS(sshd.SSH(""))); err != nil {
		u.t.Fatal(err)
	}
	key := filepath.Join(ssh, "id_ed25519")
	if err := errors.Join(os.Chmod(key, 0o600), os.Chmod(filepath.Dir(sshd.Dir), 0o755)); err != nil {
		u.t.Fatal(err)
	}
	if id == nil {
		return sshd
	}
	for _, path := range []string{u.user.dir, u.user.dir + "/cache", ssh, key, filepath.Join(ssh, "known_hosts"), filepath.Join(sshd.Dir, "home")} {
		if err := os.Chown(path, int(id.Uid), int(id.Gid)); err != nil {
			u.t.Fatal(err)
		}
	}
	return sshd
}

// upAsOwner starts corrald as who it is to be, and not as root for whom it becomes somebody else: the ssh files are
// below HOME.
func (u *condorUser) upAsOwner() {
	u.t.Helper()
	cmd := u.command("up")
	cmd.Env = slices.DeleteFunc(slices.Clone(u.env), func(e string) bool { return strings.HasPrefix(e, "CORRAL_RUN_AS=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner(u.t)}
	if out, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("corral up: %v\n%s", err, out)
	}
}

// owner is who has the pool if that is not who runs the test.
func owner(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := osuser.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// login is the name of who runs the test, and its sshd.
func login(t testing.TB) string {
	t.Helper()
	me, err := osuser.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// wantAttemptsThatRun checks that each glidein has one attempt, and that it runs: workers may be registered a moment
// before the site's next poll says so.
func (u *user) wantAttemptsThatRun() {
	u.t.Helper()
	var all []corral.Glidein
	u.until("attempts to be seen running", 5*time.Minute, func() bool {
		all = read[[]corral.Glidein](u, "glidein", "list")
		return !slices.ContainsFunc(all, func(g corral.Glidein) bool {
			return len(g.Attempts) == 1 && g.Attempts[0].Live() && g.Attempts[0].State != corral.JobRunning
		})
	})
	for _, g := range all {
		if len(g.Attempts) != 1 || g.Attempts[0].State != corral.JobRunning {
			u.t.Errorf("glidein %d has the attempts %+v, want one that runs", g.ID, g.Attempts)
		}
	}
}
