package gridsite_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// slurm is the one cluster of the tests of this package.
var slurm = sync.OnceValues(func() (*gridsitetest.Slurm, error) {
	cluster, err := gridsitetest.StartSlurm(nil)
	if err == nil {
		stopSlurm = cluster.Stop
	}
	return cluster, err
})

// stopSlurm ends what the tests started.
var stopSlurm = func() error { return nil }

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
		Walltime: 2 * time.Second,
		Patience: time.Minute,
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
