package gridsite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
)

// onSlurm is the cluster's head node with one of Slurm's commands replaced by a script, in which REAL is the real one.
func onSlurm(t *testing.T, name, script string) (s slurmSite, real string) {
	t.Helper()
	cluster := startSlurm(t)
	real = cluster.Command(name).Path
	changed := withCommand(t, name, strings.ReplaceAll(script, "REAL", real)).(siteConn)
	conn := siteConn{cluster.On(dial(t)), changed.bin + ":" + filepath.Dir(real)}
	root := filepath.Join(t.TempDir(), "root")
	return slurmSite{t, gridsite.NewSlurm(conn, root), cluster, root}, real
}

// However a user calls other jobs, ours are seen, kept, and cancelled. (To the echo of some shells "\c" is the end of
// all output.)
func TestSlurmOddNamesOfOtherJobs(t *testing.T) {
	t.Parallel()
	s, _ := onSlurm(t, "squeue", `printf '%s\n' '7 PENDING C:\code\012|None' '8 RUNNING two words|None' '9 RUNNING |None'
exec REAL "$@"`)
	tag, id := s.submit("true", func(spec *gridsite.JobSpec) { spec.Queue = "held" })
	s.expect(tag, gridsite.Queued, id)
	var no *gridsite.Refused
	if err := s.Forget(t.Context(), tag); !errors.As(err, &no) {
		t.Errorf("Forget = %v, want it refused", err)
	}
	if err := s.Cancel(t.Context(), tag, 0); err != nil {
		t.Fatal(err)
	}
	if left := s.command("squeue", "-h", "-n", tag); left != "" {
		t.Errorf("cancelled, and left: %s", left)
	}
}
