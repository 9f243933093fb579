//go:build sites

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/netns"
)

const headPort = "2222"

// A headed is a stand whose node reaches nothing but its head node, where an sshd is, which forwards nothing.
type headed struct {
	*stand
	head  *netns.Host
	door  string // before the PATH of what the sshd runs: its shells are on the node
	dir   string // the sshd's
	sshd  *exec.Cmd
	login string
}

// newHeaded starts one, whose workers keep their tasks for as long as lease says without corrald.
func newHeaded(t *testing.T, lease time.Duration) *headed {
	t.Helper()
	began := time.Now()
	h := &headed{stand: &stand{}}
	h.pool, h.head, h.node = netns.NewHeaded(t)
	h.door = openDoor(t, h.node)
	h.condorUser = newCondorUser(t, "CORRALD_LEASE="+lease.String())
	h.settleSSH()
	h.startSSHD()
	t.Cleanup(h.stopSSHD)
	h.asUser("corral up")
	made := madeForNode(t)
	h.must("package", "import", "--sign", made.worker)
	h.must("cluster", "create", "mine", "--kind", "condor", "--htcondor", made.release)
	h.must("site", "create", "hpc", "--contact", "ssh://"+h.login+"@"+net.JoinHostPort(h.head.Addr.String(), headPort),
		"--batch", "fork", "--root", h.open+"/site", "--accept-host-key", "--wait")
	t.Logf("%6.1f s  corrald, its pool and the site are there", time.Since(began).Seconds())
	return h
}

// asUser runs a script on the pool's host as who corrald is to be, and not as root for whom it becomes somebody else: the
// ssh files are below HOME.
func (h *headed) asUser(script string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := h.pool.UserCommand(ctx, "/bin/sh", "-euc", script)
	cmd.Dir = h.open
	for _, e := range h.env {
		if !strings.HasPrefix(e, "CORRAL_RUN_AS=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// settleSSH gives the user a key that the head node's sshd lets in.
func (h *headed) settleSSH() {
	h.t.Helper()
	h.dir = h.open + "/sshd"
	tools, err := exec.Command("../../scripts/sshd", "--fetch").Output()
	if err != nil {
		h.t.Fatalf("fetching sshd: %v", err)
	}
	ssh := filepath.Join(h.user.dir, ".ssh")
	for _, dir := range []string{h.dir, h.dir + "/home", ssh} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	key := filepath.Join(ssh, "id_ed25519")
	keygen := strings.TrimSpace(string(tools)) + "/ssh-keygen"
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		h.t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.dir+"/authorized_keys", public, 0o600); err != nil {
		h.t.Fatal(err)
	}
	me, err := osuser.Current()
	if err != nil {
		h.t.Fatal(err)
	}
	h.login = me.Username
	if os.Getuid() != 0 {
		return
	}
	nobody, err := osuser.Lookup("nobody")
	if err != nil {
		h.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	for _, path := range []string{h.user.dir, h.user.dir + "/cache", ssh, key} {
		if err := os.Chown(path, uid, -1); err != nil {
			h.t.Fatal(err)
		}
	}
}

// startSSHD starts the head node's sshd, and waits until it answers.
func (h *headed) startSSHD() {
	h.t.Helper()
	start := h.head.UserCommand
	if os.Getuid() == 0 {
		start = h.head.Command
	}
	address := net.JoinHostPort(h.head.Addr.String(), headPort)
	h.sshd = start(context.Background(), "../../scripts/sshd", h.dir, headPort, "ListenAddress "+address,
		"AllowTcpForwarding no", "SetEnv PATH="+h.door+":"+os.Getenv("PATH"))
	log, err := os.OpenFile(h.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.sshd.Stdout, h.sshd.Stderr = log, log
	if err := h.sshd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.until("sshd listens", time.Minute, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", h.sshd.Process.Pid))
		return err == nil && strings.Contains(string(b), "010112C6:08AE") // 198.18.1.1:2222
	})
}

// stopSSHD kills the sshd and all its connections.
func (h *headed) stopSSHD() {
	pid := h.sshd.Process.Pid
	logins, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = h.sshd.Process.Kill()
	for _, login := range strings.Fields(string(logins)) {
		if pid, err := strconv.Atoi(login); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = h.sshd.Wait()
	if h.t.Failed() {
		log, _ := os.ReadFile(h.dir + "/log")
		h.t.Logf("sshd said:\n%s", tail(log, 100))
	}
}

// Nodes without any route out are served by --broker auto: it finds that only the relay through ssh is left. When the
// sshd is killed for a while, workers find corrald again within their lease.
func TestRelay(t *testing.T) {
	t.Parallel()
	h := newHeaded(t, 5*time.Minute)
	h.timed("workers of both kinds", func() { h.bothKinds() })
	h.timed("1,000 tasks, 500 that stream, and a dead sshd meanwhile", h.acrossOutage)
	h.timed("ten jobs", h.tenJobs)
	h.timed("all goes", func() { h.must("down", "--force") })
	if left, err := os.ReadDir(h.open + "/site"); !os.IsNotExist(err) {
		t.Errorf("the site's root has %v, %v", left, err)
	}
}

// bothKinds asks for a glidein of two cpus in a cluster of each kind, and waits for the workers.
func (h *headed) bothKinds() (embedded, condor string) {
	h.t.Helper()
	embedded = h.must("glidein", "create", "--site", "hpc", "--cpus", "2", "--walltime", "30m", "-q")
	condor = h.must("glidein", "create", "--site", "hpc", "--cluster", "mine", "--cpus", "2", "--memory", "256MiB", "--walltime", "30m", "-q")
	for id, say := range map[string]string{embedded: "by relay:10.82.0.1:", condor: "the site's relay connects, at 10.82.0.1:"} {
		if a := h.corral("glidein", "wait", id, "--timeout", "5m"); a.code != 0 {
			h.t.Fatalf("no worker: %+v\n%s", a, h.must("glidein", "history", id))
		}
		if said := h.must("glidein", "history", id); !strings.Contains(said, say) {
			h.t.Errorf("the history says\n%s\nwant %q in it", said, say)
		}
	}
	return embedded, condor
}

// acrossOutage runs tasks on both kinds of workers, through HTCondor streamed, while the sshd is killed, and comes back.
func (h *headed) acrossOutage() {
	h.t.Helper()
	begin := func(tasks int, flags ...string) string {
		flow := h.workflow(fmt.Sprintf("steps%d", tasks), h.behind("go", 50, steps(tasks, 20*time.Millisecond))...)
		return h.must(append([]string{"run", flow, "--detach", "-q"}, flags...)...)
	}
	runs := map[string]int{begin(1000): 1000, begin(500, "--cluster", "mine", "--stream"): 500}
	for run := range runs {
		h.until("some tasks are done", 2*time.Minute, func() bool { return h.run(run).Tasks.Done >= 50 })
	}
	h.stopSSHD()
	h.until("corrald notices", time.Minute, func() bool {
		return read[corral.Site](h.user, "site", "show", "hpc").Trouble.Why != ""
	})
	h.let("go")
	h.startSSHD()
	for run, tasks := range runs {
		h.must("runs", "wait", run)
		got := h.run(run)
		if got.State != corral.RunSucceeded || got.Tasks.Done != tasks || got.Report.Requeued != 0 {
			h.t.Errorf("run %s is %s with %d tasks done and %d requeued, want SUCCEEDED with %d and none: %s",
				run, got.State, got.Tasks.Done, got.Report.Requeued, tasks, got.Reason)
		}
	}
}
