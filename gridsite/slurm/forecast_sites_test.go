//go:build sites

package slurm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// TestForecastOfRealSlurm: on an idle cluster a job would start at once; behind a job that holds all nodes for half an
// hour, it would wait for the end of that job, and the forecast leaves nothing at the site.
func TestForecastOfRealSlurm(t *testing.T) {
	t.Parallel()
	cluster, err := gridsitetest.StartSlurm([]string{"NODES=2"}, "SchedulerType=sched/backfill")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	site := slurm.New(cluster.On(local.Conn{}), t.TempDir())
	spec := gridsite.JobSpec{Tag: "forecast", Argv: []string{"/bin/true"}, Hosts: 2, CPUs: 2, Walltime: 10 * time.Minute}
	if wait, err := site.Forecast(t.Context(), spec); err != nil || wait > time.Minute {
		t.Errorf("idle: %s, %v", wait, err)
	}
	hold := cluster.Command("sbatch", "--nodes=2", "--exclusive", "--time=30", "--output=/dev/null", "--wrap=sleep 600")
	if out, err := hold.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	gridsitetest.Until(t, "the job to hold the nodes", func() bool {
		b, err := site.Backlog(t.Context(), "")
		return err == nil && len(b.Running) == 1
	})
	said, err := cluster.Command("sbatch", "--test-only", "--nodes=2", "--time=10", "--wrap=true").CombinedOutput()
	t.Logf("sbatch --test-only: %s%v", said, err)
	wait, err := site.Forecast(t.Context(), spec)
	if err != nil || wait < 20*time.Minute || wait > 40*time.Minute {
		t.Errorf("behind a job of 30 minutes: %s, %v", wait, err)
	}
	spec.Hosts = 3
	if _, err := site.Forecast(t.Context(), spec); !errors.As(err, new(*gridsite.Refused)) {
		t.Errorf("more nodes than there are: %v", err)
	}
	if out, err := cluster.Command("squeue", "-h", "-n", "forecast").Output(); err != nil || len(out) > 0 {
		t.Errorf("the queue contains %q, %v", out, err)
	}
}
