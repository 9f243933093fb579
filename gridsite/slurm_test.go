//go:build sites

package gridsite_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// slurm is the one cluster of the tests of this package.
var slurm = sync.OnceValues(func() (*gridsitetest.Slurm, error) {
	cluster, err := gridsitetest.StartSlurm(nil)
	if err == nil {
		atEnd = cluster.Stop
	}
	return cluster, err
})

func startSlurm(t testing.TB) *gridsitetest.Slurm {
	t.Helper()
	cluster, err := slurm()
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestSlurmConformance(t *testing.T) {
	t.Parallel()
	conn := startSlurm(t).On(dial(t))
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openSlurm(t, conn) })
}

func openSlurm(t testing.TB, conn gridsite.Conn) gridsitetest.Fixture {
	root := filepath.Join(t.TempDir(), "a 'root' of \"$HOME\" é `id` 100%j")
	return gridsitetest.Fixture{
		Conn:     conn,
		Open:     func() gridsite.Batch { return gridsite.NewSlurm(conn, root) },
		Root:     root,
		Walltime: walltime,
		Patience: gridsitetest.Patience,
		Held:     "held",
		Crash:    killBatchScript,
	}
}

// killBatchScript ends our script that watches over the job.
func killBatchScript(t testing.TB, id string) {
	t.Helper()
	out, err := startSlurm(t).Command("scancel", "--batch", "--signal=KILL", strings.TrimSpace(id)).CombinedOutput()
	if err != nil {
		t.Fatalf("scancel: %v %s", err, out)
	}
}

func TestSSHSlurmConformance(t *testing.T) {
	t.Parallel()
	conn := sshdOfSlurm(t).open()
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openSlurm(t, conn) })
}

// sshdOfSlurm is the sshd of the cluster's head node.
func sshdOfSlurm(t testing.TB) *sshd {
	t.Helper()
	return startSSHD(t, "SetEnv "+strings.Join(startSlurm(t).Environ(), " "))
}

func TestSSHForkOutage(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	f := openFork(t, d.open())
	f.Conn = dial(t)
	gridsitetest.TestOutage(t, f, d.outage())
}

func TestSSHSlurmOutage(t *testing.T) {
	t.Parallel()
	d := sshdOfSlurm(t)
	f := openSlurm(t, d.open())
	f.Conn = dial(t)
	gridsitetest.TestOutage(t, f, d.outage())
}

func (d *sshd) outage() gridsitetest.Outage {
	return gridsitetest.Outage{Stop: func(testing.TB) { d.Stop() }, Start: func(testing.TB) { d.Start(d.t) }}
}

// ownSlurm is a cluster for one test, for what concerns the whole of it.
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
		if err := cluster.StopController(); err != nil {
			t.Fatal(err)
		}
	}
	gridsitetest.TestOutage(t, openSlurm(t, cluster.On(dial(t))), gridsitetest.Outage{Stop: stop, Start: start, Forget: func(t testing.TB) {
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
