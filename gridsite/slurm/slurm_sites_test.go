//go:build sites

package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// shared is the one cluster of the tests of this package.
var shared = sync.OnceValues(func() (*gridsitetest.Slurm, error) {
	cluster, err := gridsitetest.StartSlurm(nil)
	if err == nil {
		atEnd = cluster.Stop
	}
	return cluster, err
})

func startSlurm(t testing.TB) *gridsitetest.Slurm {
	t.Helper()
	cluster, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestSlurmConformance(t *testing.T) {
	t.Parallel()
	conn := startSlurm(t).On(local.Conn{})
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openSlurm(t, conn) })
}

func openSlurm(t testing.TB, conn gridsite.Conn) gridsitetest.Fixture {
	root := filepath.Join(t.TempDir(), "a 'root' of \"$HOME\" é `id` 100%j")
	return gridsitetest.Fixture{
		Conn:  conn,
		Open:  func() gridsite.Batch { return slurm.New(conn, root) },
		Root:  root,
		Held:  "held",
		Crash: killBatchScript,
	}
}

// killBatchScript kills the script that monitors the job.
func killBatchScript(t testing.TB, id string) {
	t.Helper()
	out, err := startSlurm(t).Command("scancel", "--batch", "--signal=KILL", strings.TrimSpace(id)).CombinedOutput()
	if err != nil {
		t.Fatalf("scancel: %v %s", err, out)
	}
}

func TestSSHSlurmConformance(t *testing.T) {
	t.Parallel()
	conn := dial(t, sshdOfSlurm(t))
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openSlurm(t, conn) })
}

// sshdOfSlurm is the sshd of the cluster's head node.
func sshdOfSlurm(t testing.TB) *gridsitetest.SSHD {
	t.Helper()
	return gridsitetest.StartSSHD(t, "SetEnv "+strings.Join(startSlurm(t).Environ(), " "))
}

// dial opens a transport with the files of the server's user.
func dial(t testing.TB, d *gridsitetest.SSHD) *ssh.Conn {
	t.Helper()
	conn, err := ssh.New(d.Contact(), ssh.Options{Home: d.Home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestSSHSlurmOutage(t *testing.T) {
	t.Parallel()
	d := sshdOfSlurm(t)
	f := openSlurm(t, dial(t, d))
	f.Conn = local.Conn{}
	outage := gridsitetest.Outage{Stop: func(testing.TB) { d.Stop() }, Start: func(t testing.TB) { d.Start(t) }}
	gridsitetest.TestOutage(t, f, outage)
}

// ownSlurm returns a cluster for one test, whose actions affect the whole cluster.
func ownSlurm(t *testing.T) *gridsitetest.Slurm {
	t.Helper()
	cluster, err := gridsitetest.StartSlurm([]string{"NODES=1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

func TestSlurmOutage(t *testing.T) {
	t.Parallel()
	cluster := ownSlurm(t)
	start := func(t testing.TB) {
		if err := cluster.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop := func(t testing.TB) {
		if err := cluster.EndController(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	gridsitetest.TestOutage(t, openSlurm(t, cluster.On(local.Conn{})), gridsitetest.Outage{Stop: stop, Start: start, Forget: func(t testing.TB) {
		stop(t)
		memory, err := filepath.Glob(filepath.Join(cluster.Dir, "state", "job_state*"))
		if err != nil || len(memory) == 0 {
			t.Fatalf("nothing to forget: %v %v", memory, err)
		}
		for _, file := range memory {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		start(t)
	}})
}
