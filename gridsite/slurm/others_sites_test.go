//go:build sites

package slurm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// onSlurm is the cluster's head node with some of Slurm's commands replaced by scripts, in which REAL is the real
// command.
func onSlurm(t *testing.T, scripts map[string]string) slurmSite {
	t.Helper()
	cluster := startSlurm(t)
	bin := filepath.Dir(cluster.Command("sbatch").Path)
	for name, script := range scripts {
		script = strings.ReplaceAll(script, "REAL", cluster.Command(name).Path)
		bin = gridsitetest.WithCommand(t, name, script).Bin + ":" + bin
	}
	root := filepath.Join(t.TempDir(), "root")
	return slurmSite{t, slurm.New(gridsitetest.InPath{Conn: cluster.On(local.Conn{}), Bin: bin}, root), cluster, root}
}

// Jobs of Corral are found, kept and cancelled regardless of the names of a user's other jobs. (To the echo of some
// shells "\c" is the end of all output.)
func TestSlurmOddNamesOfOtherJobs(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, map[string]string{"squeue": `printf '%s\n' '7 PENDING C:\code\012|None' '8 RUNNING two words|None' '9 RUNNING |None'
exec REAL "$@"`})
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

// held is a job that waits forever.
func held(t *testing.T) gridsite.JobSpec {
	spec := jobSpec(t.Name(), "true")
	spec.Queue = "held"
	return spec
}

// A site's own sbatch prints more than the id, and its squeue prints remarks.
func TestSlurmWithRemarks(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, map[string]string{"sbatch": `echo "--> Verifying valid submit host for this job (login1)...OK"
echo "--> Checking available allocation (A-42)...OK"
echo
exec REAL "$@"`})
	tag, id := s.submit("true", func(spec *gridsite.JobSpec) { spec.Queue = "held" })
	s.expect(tag, gridsite.Queued, id)
}

// An sbatch that prints no id has nevertheless queued the job, which is found among the other jobs in the queue.
func TestSlurmPrintsNoID(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, map[string]string{
		"sbatch": `case "$*" in *--help*) exec REAL "$@" ;; esac
REAL "$@" >/dev/null && echo 'Your job is on its way'`,
		"squeue": `echo 'squeue: a remark of the site' >&2; exec REAL "$@"`,
	})
	spec := held(t)
	if id, err := s.Submit(t.Context(), spec); corral.KindOf(err) != corral.Unknown {
		t.Fatalf("Submit = %q, %v, want unknown", id, err)
	}
	t.Cleanup(func() { s.cancel(spec.Tag) })
	id := s.command("squeue", "-h", "-n", spec.Tag, "-o", "%A")
	s.expect(spec.Tag, gridsite.Queued, id)
	if again, err := s.Submit(t.Context(), spec); again != id || err != nil {
		t.Errorf("submitted again: %q, %v; want %s", again, err, id)
	}
	s.expect(spec.Tag, gridsite.Queued, id)
}

// An sbatch whose answer was lost may have queued the job; an sbatch that could not connect has not queued it.
func TestSlurmAnswerLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, end string
		want      corral.Kind
	}{
		{"not received", failing("Unable to contact slurm controller (receive failure)"), corral.Unknown},
		{"late", failing("Socket timed out on send/recv operation"), corral.Unknown},
		{"in part", failing("Header lengths are longer than data received"), corral.Unknown},
		{"killed", "kill -KILL $$", corral.Unknown},
		{"not sent", failing("Unable to contact slurm controller (connect failure)"), corral.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onSlurm(t, map[string]string{"sbatch": `case "$*" in *--help*) exec REAL "$@" ;; esac
` + c.end})
			spec := jobSpec("answer-lost", "true")
			_, err := s.Submit(t.Context(), spec)
			var no *gridsite.Refused
			if corral.KindOf(err) != c.want || errors.As(err, &no) {
				t.Errorf("Submit = %v, want %s", err, c.want)
			}
			_, gone := os.Stat(jobdir.Path(s.root, spec.Tag))
			if (gone == nil) != (c.want == corral.Unknown) {
				t.Errorf("its directory: %v", gone)
			}
		})
	}
}

func failing(why string) string {
	return "echo 'sbatch: error: Batch job submission failed: " + why + "' >&2; exit 1"
}

func (s slurmSite) cancel(tag string) {
	if err := s.Cancel(context.WithoutCancel(s.Context()), tag, 0); err != nil {
		s.Error(err)
	}
}

// The NFS of a head node caches for a while the fact that a file does not exist, until the directory is changed from
// that node.
func TestSlurmOfANetworkFileSystem(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	tag, _ := s.submit("exit 3", nil)
	gridsitetest.Await(t, s, tag)
	control := filepath.Join(jobdir.Path(s.root, tag), ".corral")
	if err := os.Rename(filepath.Join(control, "status"), filepath.Join(control, "unseen")); err != nil {
		t.Fatal(err)
	}
	looks := gridsitetest.WithCommand(t, "rmdir", `rmdir=$(PATH=${PATH#*:} command -v rmdir)
"$rmdir" "$@" && mv "${1%/*}/unseen" "${1%/*}/status"`)
	s.Batch = slurm.New(gridsitetest.InPath{Conn: s.cluster.On(local.Conn{}), Bin: looks.Bin + ":" + filepath.Dir(s.cluster.Command("sbatch").Path)}, s.root)
	if job := gridsitetest.Await(t, s, tag); job.Exit == nil || *job.Exit != 3 || job.Killed != gridsite.NotKilled {
		t.Errorf("it ended as %+v, want what its status says", job)
	}
}

// If accounting does not answer, the state of the queue is still reported.
func TestSlurmAccountingHangs(t *testing.T) {
	t.Parallel()
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		t.Fatal(err)
	}
	s := onSlurm(t, map[string]string{
		"sacct":   "exec sleep 1000",
		"timeout": "shift; exec " + timeout + ` 1 "$@"`, // the product waits longer than the test can
	})
	tag, id := s.submit("sleep 1000", nil)
	s.running(tag)
	killBatchScript(t, id)
	gridsitetest.Until(t, "it to be over", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), gridsitetest.Patience)
		defer cancel()
		jobs, err := s.Poll(ctx, []string{tag})
		if err != nil {
			t.Fatal(err)
		}
		return jobs[tag].Phase == gridsite.Ended
	})
}
