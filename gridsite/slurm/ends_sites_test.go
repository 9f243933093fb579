//go:build sites

package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// The causes of ends by the site are distinguished.
func TestSlurmEndsJobs(t *testing.T) {
	t.Parallel()
	cluster := ownSlurm(t)
	for _, c := range []struct {
		name string
		end  func(s slurmSite, node, id string)
		want gridsite.Killed
		says string
	}{
		{"a node fails", func(s slurmSite, node, _ string) {
			s.command("scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
			s.Cleanup(func() {
				gridsitetest.Until(s, node+" to return", func() bool {
					_ = s.cluster.Command("scontrol", "update", "NodeName="+node, "State=RESUME").Run() // it may have done so by itself
					return s.command("sinfo", "-h", "-p", "normal", "-n", node, "-t", "idle", "-o", "%n") != ""
				})
			})
		}, gridsite.ByNode, "NODE_FAIL"},
		{"an urgent job needs its place", func(s slurmSite, node, _ string) {
			spec := jobSpec(s.Name()+"-urgent", "sleep 1000")
			spec.Queue, spec.CPUs, spec.SiteOptions = "urgent", 2, []string{"--nodelist=" + node}
			s.submit("sleep 1000", func(old *gridsite.JobSpec) { *old = spec })
		}, gridsite.ByPreemption, "PREEMPTED"},
		{"its administrator starts it again", func(s slurmSite, _, id string) {
			s.command("scontrol", "update", "JobId="+id, "Requeue=1")
			s.command("scontrol", "requeue", id)
		}, gridsite.ByPreemption, ""},
		{"somebody else cancels it", func(s slurmSite, _, id string) { s.command("scancel", id) }, gridsite.BySite, "CANCELLED"},
		{"its time is over sooner than it was to be", func(s slurmSite, _, id string) { s.command("scontrol", "update", "JobId="+id, "TimeLimit=1") }, gridsite.ByWalltime, "TIMEOUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSlurmSiteOn(t, cluster)
			mark := filepath.Join(t.TempDir(), "started")
			tag, id := s.submit("echo started >>"+mark+"; sleep 1000", func(spec *gridsite.JobSpec) { spec.CPUs = 2 })
			s.running(tag)
			gridsitetest.Until(s, "the first line of its script", func() bool {
				text, err := os.ReadFile(mark)
				return err == nil && len(text) > 0
			})
			c.end(s, s.command("squeue", "-h", "-j", id, "-o", "%N"), id)
			job := gridsitetest.Await(t, s, tag)
			if job.Killed != c.want || job.ID != id || c.says != "" && job.Says != c.says {
				t.Errorf("it ended as %+v, want it killed by %q, as %s", job, c.want, c.says)
			}
			if named, err := s.Read(t.Context(), tag, gridsite.NodeFile); err != nil || strings.TrimSpace(string(named)) == "" {
				t.Errorf("it does not say on which node it began: %q, %v", named, err)
			}
			if got, err := os.ReadFile(mark); string(got) != "started\n" || err != nil {
				t.Errorf("it said %q, want that it started once", got)
			}
		})
	}
}
