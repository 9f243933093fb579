//go:build sites

package condorpool

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
)

// TestPoolOutlivesCorrald checks that the next corrald adopts the pool that the last one left behind, and carries out
// the requests made in the meantime.
func TestPoolOutlivesCorrald(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	job, master := w.submit(c), w.daemon(c, "condor_master")
	w.endRun()
	if w.daemon(c, "condor_master") != master {
		t.Fatal("the pool ended with corrald")
	}
	if _, _, err := w.keepers.Mint(t.Context(), c.ID, 1, 1); err == nil {
		t.Error("a token without anybody who keeps the pool")
	}

	w.begin()
	w.eventually("adoption", func() bool { _, err := w.keepers.Env(t.Context(), c.ID); return err == nil })
	if w.daemon(c, "condor_master") != master || w.queued(c, job) != 1 {
		t.Error("the pool was restarted")
	}

	w.endRun()
	w.kill(c, "condor_master")                                                  // or the machine was rebooted
	if err := os.Remove(w.keepers.folder(c.ID).path + "/release"); err != nil { // as if the release was deleted
		t.Fatal(err)
	}
	w.begin()
	w.eventually("another master", func() bool { now := w.daemon(c, "condor_master"); return now != 0 && now != master })
	w.eventually("health", func() bool { return w.cluster(c.ID).Reason == "" })
	if w.queued(c, job) != 1 {
		t.Error("the queue is lost")
	}

	for _, asked := range []struct {
		move corral.ClusterMove
		end  corral.ClusterState
	}{{corral.ClusterStop, corral.ClusterStopped}, {corral.ClusterStart, corral.ClusterReady}} {
		w.endRun()
		w.move(c.ID, asked.move)
		w.begin()
		w.await(c.ID, asked.end)
	}
	if w.queued(c, job) != 1 {
		t.Error("the queue is lost")
	}
	w.endRun()
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	w.begin()
	w.await(c.ID, corral.ClusterDeleted)
}

// TestStepsMayBeRepeated simulates the death of corrald after the pool was started but before the start was recorded.
func TestStepsMayBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	job, master := w.submit(c), w.daemon(c, "condor_master")
	w.endRun()
	w.move(c.ID, corral.ClusterStart)
	w.begin()
	w.await(c.ID, corral.ClusterReady)
	if again := w.daemon(c, "condor_master"); again == 0 || again == master {
		t.Errorf("master %d after a restart, before it %d", again, master)
	}
	if w.queued(c, job) != 1 {
		t.Error("the queue is lost")
	}
	// Everything except the row has already been removed.
	w.endRun()
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	for _, pid := range daemons(w.dir) {
		if err := kill(pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(w.keepers.folder(c.ID).path); err != nil {
		t.Fatal(err)
	}
	w.begin()
	w.await(c.ID, corral.ClusterDeleted)
}

// TestUpgradeKeepsTheQueue upgrades the pool to another release. Shells that use the pool continue to work.
func TestUpgradeKeepsTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	job := w.submit(c)
	before, err := w.keepers.Env(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(w.dir, "newer")
	if err := os.Symlink(release, newer); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		if _, err := tx.SetCluster(c.ID, func(c *corral.Cluster) { c.HTCondor = newer }); err != nil {
			return err
		}
		_, err := tx.MoveCluster(c.ID, corral.ClusterStart, "upgrade")
		return err
	})
	c = w.await(c.ID, corral.ClusterReady)
	if link, err := os.Readlink(w.keepers.folder(c.ID).path + "/release"); err != nil || link != newer || c.HTCondor != newer {
		t.Errorf("runs %s, %v, and says %s, want %s", link, err, c.HTCondor, newer)
	}
	after, err := w.keepers.Env(t.Context(), c.ID)
	if err != nil || strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("environment %v, before the upgrade %v: %v", after, before, err)
	}
	if w.queued(c, job) != 1 {
		t.Error("the queue is lost")
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	broken := filepath.Join(w.dir, "broken")
	if err := os.MkdirAll(filepath.Join(broken, "sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		c    corral.Cluster
		want string
	}{
		"no release":     {corral.Cluster{HTCondor: "/none"}, "no HTCondor /none here"},
		"broken release": {corral.Cluster{HTCondor: broken}, "condor_master"},
		"port taken":     {corral.Cluster{Collector: taken.Addr().String()}, "in use"},
		"no address":     {corral.Cluster{Collector: "everywhere"}, "not an IP address with a port"},
		"elsewhere":      {corral.Cluster{Collector: "192.0.2.1:20000"}, "cannot assign"},
	} {
		test.c.Name = name
		c, _ := w.over(w.create(test.c).ID)
		if c.State != corral.ClusterFailed || !strings.Contains(c.Reason, test.want) {
			t.Errorf("%s: %s: %s, want %q", name, c.State, c.Reason, test.want)
		}
		t.Logf("%s: %s", name, c.Reason)
	}
	if left := daemons(w.dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestEnvIsEnough runs HTCondor's commands as the pool's owner with no other environment.
func TestEnvIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	env, err := w.keepers.Env(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	j := w.attempt(c, 1, 2)
	w.glidein(c, j, w.mint(c, j), nil)
	home := filepath.Join(w.dir, "home")
	if err := (folder{home, programs.Unprivileged()}).make(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job.sub": "executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = YES\nqueue\n",
		"two.dag": "JOB A job.sub\nJOB B job.sub\nPARENT A CHILD B\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := condor.AccountFor(programs.Unprivileged())
	if err != nil {
		t.Fatal(err)
	}
	sh := func(command string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Dir = home
		cmd.Env = append([]string{"HOME=" + home}, env...)
		for i, v := range cmd.Env {
			if strings.HasPrefix(v, "PATH=") {
				cmd.Env[i] = v + ":/usr/bin:/bin"
			}
		}
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.UID, Gid: owner.GID}}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for command, want := range map[string]string{
		// DAGMan refuses logs in the machine's temporary folder unless it is configured not to be strict.
		"condor_status -schedd":                                 "corral.pool",
		"condor_submit job.sub":                                 "1 job(s) submitted",
		"_CONDOR_DAGMAN_USE_STRICT=0 condor_submit_dag two.dag": "submitted to cluster",
		"condor_q":             "nobody",
		"echo $CORRAL_CLUSTER": "mine",
		"condor_config_val NEGOTIATOR_INTERVAL; command -v condor_q": "release/bin/condor_q",
	} {
		if command == "condor_q" {
			want = owner.Name
		}
		if out, err := sh(command); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q, want %q in it", command, err, out, want)
		}
	}
	w.eventually("an empty queue", func() bool {
		out, err := sh("condor_q -af ClusterId")
		return err == nil && strings.TrimSpace(out) == ""
	})
	if out, err := sh("tail -1 two.dag.dagman.out"); err != nil || !strings.Contains(out, "EXITING WITH STATUS 0") {
		t.Errorf("the DAG ended: %v, %q", err, out)
	}
}

// TestQueueIsOne: runs keep their queue while the pool is stopped, and lose it with the cluster.
func TestQueueIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	first, err := w.keepers.Queue(c)
	if err != nil {
		t.Fatal(err)
	}
	w.move(c.ID, corral.ClusterStop)
	w.await(c.ID, corral.ClusterStopped)
	if _, err := w.keepers.Queue(c); corral.KindOf(err) != corral.Conflict {
		t.Errorf("Queue() of a stopped cluster: %v, want a conflict", err)
	}
	w.move(c.ID, corral.ClusterStart)
	w.await(c.ID, corral.ClusterReady)
	if again, err := w.keepers.Queue(c); err != nil || again != first {
		t.Errorf("Queue() after a restart = %p, %v, want %p", again, err, first)
	}
	if first.(*queue).closed {
		t.Error("the queue was closed while its cluster is there")
	}
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	w.await(c.ID, corral.ClusterDeleted)
	if !first.(*queue).closed {
		t.Error("the queue of a removed cluster was not closed")
	}
}

// TestRemovalEndsDAGMan removes a pool in whose schedd a DAG waits for workers.
func TestRemovalEndsDAGMan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	dir := filepath.Join(w.dir, "dag")
	if err := (folder{dir, programs.Unprivileged()}).make(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job.sub":  "executable = /bin/true\ntransfer_executable = false\nqueue\n",
		"one.dag":  "JOB A job.sub\nSET_JOB_ATTR X = 1\n",
		"dag.conf": "DAGMAN_USE_STRICT = 0\n", // otherwise DAGMan refuses logs in the temporary folder
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.tools(c).Run(t.Context(), nil, "condor_submit_dag", "-config", filepath.Join(dir, "dag.conf"), filepath.Join(dir, "one.dag")); err != nil {
		t.Fatal(err)
	}
	w.eventually("DAGMan", func() bool { return w.daemon(c, "condor_dagman") != 0 })
	// The schedd is killed, so that the DAG is not ended in an orderly way.
	w.kill(c, "condor_master", "condor_schedd")
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	w.await(c.ID, corral.ClusterDeleted)
}

// TestNoQueueThatNobodyCloses requests a queue from a keeper that was found before but is about to end.
func TestNoQueueIsLeftOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k, c, tools, err := w.keepers.ready(t.Context(), w.ready("mine").ID)
	if err != nil {
		t.Fatal(err)
	}
	q, err := k.queue(c, tools)
	if err != nil {
		t.Fatal(err)
	}
	w.endRun()
	if !q.(*queue).closed {
		t.Error("the queue was not closed with corrald")
	}
	if late, err := k.queue(c, tools); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("queue() after the end = %v, %v, want unavailable", late, err)
	}
	w.begin()
}

// A recorder records which releases should be kept.
type recorder struct {
	installed
	kept []string
}

func (r *recorder) Prune(keep []string) error {
	r.kept = keep
	return nil
}

// TestReleasesInUseAreKept also checks stopped clusters, because they may be started again.
func TestReleasesInUseAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("running")
	stopped := w.ready("stopped")
	w.move(stopped.ID, corral.ClusterStop)
	w.await(stopped.ID, corral.ClusterStopped)
	w.endRun()
	r := &recorder{}
	w.keepers.releases.source = r
	w.keepers.releases.prune()
	if !slices.Equal(r.kept, []string{release, release}) {
		t.Errorf("kept are %q, want %s of both clusters", r.kept, release)
	}
	w.begin()
}
