//go:build sites

package slurm_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// A submission whose answer was lost, and which Slurm accepts after it was looked up and repeated, becomes a second job
// under the tag. While it waits it is extra and can be cancelled by its id; if it starts, it detects that the tag's job
// has started, and ends.
func TestSlurmLateSubmission(t *testing.T) {
	t.Parallel()
	cluster := startSlurm(t)
	root := t.TempDir()
	b := slurm.New(cluster.On(local.Conn{}), root)
	const tag = "late-submission"
	id, err := b.Submit(t.Context(), gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sleep", "300"}, Hosts: 1, CPUs: 1, Walltime: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Cancel(context.Background(), tag, 0); err != nil {
			t.Error(err)
		}
	})
	is := func(what string, ok func(gridsite.JobStatus) bool) {
		t.Helper()
		gridsitetest.Until(t, what, func() bool {
			jobs, err := b.Poll(t.Context(), []string{tag})
			if err != nil {
				t.Fatal(err)
			}
			return ok(jobs[tag])
		})
	}
	alone := func(j gridsite.JobStatus) bool { return j.Phase == gridsite.Running && j.ID == id && len(j.Extra) == 0 }
	is("it runs", alone)

	again := func(args ...string) string {
		t.Helper()
		dir := jobdir.Path(root, tag)
		args = append([]string{"--parsable", "-J", tag, "-D", dir, "-o", "/dev/null"}, args...)
		out, err := cluster.Command("sbatch", append(args, filepath.Join(dir, ".corral", "batch"))...).Output()
		if err != nil {
			t.Fatalf("sbatch: %v %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	waits := again("--begin=now+1hour")
	is("the one that waits is extra", func(j gridsite.JobStatus) bool {
		return j.ID == id && j.Phase == gridsite.Running && slices.Equal(j.Extra, []string{waits})
	})
	if err := b.CancelJobs(t.Context(), []string{waits}); err != nil {
		t.Fatal(err)
	}
	is("it is gone, and the other runs", alone)

	starts := again()
	is("the one that starts is gone by itself", func(j gridsite.JobStatus) bool {
		out, err := cluster.Command("squeue", "-h", "-j", starts, "-t", "PENDING,CONFIGURING,RUNNING,COMPLETING").Output()
		var unknown *exec.ExitError // an id that Slurm has forgotten
		return alone(j) && len(out) == 0 && (err == nil || errors.As(err, &unknown))
	})
}
