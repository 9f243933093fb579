//go:build sites

package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// A slurmSite is a batch system of one test on the cluster of this package.
type slurmSite struct {
	testing.TB
	*slurm.Batch
	cluster *gridsitetest.Slurm
	root    string
}

func newSlurmSite(t testing.TB) slurmSite {
	t.Helper()
	return newSlurmSiteOn(t, startSlurm(t))
}

func newSlurmSiteOn(t testing.TB, cluster *gridsitetest.Slurm) slurmSite {
	root := filepath.Join(t.TempDir(), "root")
	return slurmSite{t, slurm.New(cluster.On(local.Conn{}), root), cluster, root}
}

// submit submits a shell script under a unique tag, and cancels the job when the test ends.
func (s slurmSite) submit(script string, change func(*gridsite.JobSpec)) (tag, id string) {
	s.Helper()
	spec := jobSpec(s.Name(), script)
	if change != nil {
		change(&spec)
	}
	id, err := s.Submit(s.Context(), spec)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.Cancel(context.WithoutCancel(s.Context()), spec.Tag, 0); err != nil {
			s.Error(err)
		}
	})
	return spec.Tag, id
}

func (s slurmSite) command(name string, args ...string) string {
	s.Helper()
	out, err := s.cluster.Command(name, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%s %q: %v %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s slurmSite) running(tag string) {
	s.Helper()
	gridsitetest.Until(s, tag+" to run", func() bool {
		jobs, err := s.Poll(s.Context(), []string{tag})
		if err != nil {
			s.Fatal(err)
		}
		return jobs[tag].Phase == gridsite.Running && !jobs[tag].StartedAt.IsZero()
	})
}

// A submission whose answer was lost arrives after it was repeated.
func TestSlurmJobsUnderOneTag(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	mark := filepath.Join(t.TempDir(), "started")
	tag, first := s.submit("echo started >>"+mark+"; sleep 1000", func(spec *gridsite.JobSpec) { spec.Queue = "held" })
	again := func() string {
		return s.command("sbatch", "--parsable", "--partition=held", "--job-name="+tag, "--output=/dev/null",
			filepath.Join(jobdir.Path(s.root, tag), ".corral", "batch"))
	}
	second, third := again(), again()
	s.expect(tag, gridsite.Queued, first, second, third)
	if err := s.CancelJobs(t.Context(), []string{third}); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Until(t, "the third to leave", func() bool {
		return s.command("squeue", "-h", "-j", first+","+second+","+third, "-o", "%A") == first+"\n"+second
	})
	s.command("scontrol", "update", "JobId="+second, "Partition=normal")
	s.running(tag)
	s.expect(tag, gridsite.Running, second, first)
	s.command("scontrol", "update", "JobId="+first, "Partition=normal")
	gridsitetest.Until(t, "the first to leave", func() bool { return s.command("squeue", "-h", "-n", tag, "-o", "%A") == second })
	s.expect(tag, gridsite.Running, second)
	again()
	if err := s.Cancel(t.Context(), tag, time.Minute); err != nil {
		t.Fatal(err)
	}
	if left := s.command("squeue", "-h", "-n", tag); left != "" {
		t.Errorf("cancelled, and left: %s", left)
	}
	if got, err := os.ReadFile(mark); string(got) != "started\n" || err != nil {
		t.Errorf("they said %q, want that one started, once", got)
	}
}

// Slurm reports why a job waits, and whether it waits for something that never happens.
func TestSlurmSaysWhyAJobWaits(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	const queue = "PartitionName=shrinks"
	s.command("scontrol", "create", queue, "Nodes=ALL", "MaxTime=60", "State=DOWN")
	s.Cleanup(func() { s.command("scontrol", "delete", queue) })
	tag, _ := s.submit("true", func(spec *gridsite.JobSpec) { spec.Queue = "shrinks" })
	waits := func(why string, never bool) {
		t.Helper()
		gridsitetest.Until(t, why, func() bool {
			jobs, err := s.Poll(t.Context(), []string{tag})
			if err != nil {
				t.Fatal(err)
			}
			return jobs[tag].Waits == why && jobs[tag].Never == never && jobs[tag].Phase == gridsite.Queued
		})
	}
	waits("PartitionDown", false)
	s.command("scontrol", "update", queue, "MaxTime=10", "State=UP")
	waits("PartitionTimeLimit", true)
}

func (s slurmSite) expect(tag string, phase gridsite.Phase, id string, extra ...string) {
	s.Helper()
	jobs, err := s.Poll(s.Context(), []string{tag})
	if err != nil {
		s.Fatal(err)
	}
	if job := jobs[tag]; job.Phase != phase || job.ID != id || strings.Join(job.Extra, " ") != strings.Join(extra, " ") {
		s.Errorf("polled %+v, want %s %s beside %v", job, id, phase, extra)
	}
}

func TestSlurmRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*gridsite.JobSpec)
		words  string
	}{
		{"no such partition", func(s *gridsite.JobSpec) { s.Queue = "nope" }, "Invalid partition name specified"},
		{"walltime", func(s *gridsite.JobSpec) { s.Queue, s.Walltime = "short", 11*time.Minute }, "Requested time limit is invalid"},
		{"hosts", func(s *gridsite.JobSpec) { s.Hosts = 5 }, "Node count specification invalid"},
		{"cpus", func(s *gridsite.JobSpec) { s.CPUs = 3 }, "Requested node configuration is not available"},
		{"gpus", func(s *gridsite.JobSpec) { s.GPUs = 3 }, "Requested node configuration is not available"},
		{"constraint", func(s *gridsite.JobSpec) { s.Constraint = "slow" }, "Invalid feature specification"},
		{"line", func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--reservation=nope"} }, "reservation is invalid"},
		{"node to avoid", func(s *gridsite.JobSpec) { s.Exclude = []string{"nope"} }, "Invalid node name specified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSlurmSite(t)
			spec := jobSpec(t.Name(), "true")
			c.change(&spec)
			_, submitted := s.Submit(t.Context(), spec)
			for what, err := range map[string]error{"Submit": submitted, "Check": s.Check(t.Context(), spec)} {
				var no *gridsite.Refused
				if !errors.As(err, &no) || no.Transient || !strings.Contains(no.Text, c.words) {
					t.Errorf("%s = %#v, want refused for good: %s", what, err, c.words)
				}
			}
			if _, err := os.Stat(s.root); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a refused job leaves %s", s.root)
			}
		})
	}
}

// A partition for other groups is refused to users outside them. Root may use all partitions.
func TestSlurmRefusesOtherGroups(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	s.command("scontrol", "create", "PartitionName=groups", "Nodes=ALL", "AllowGroups=daemon")
	s.Cleanup(func() { s.command("scontrol", "delete", "PartitionName=groups") })
	var conn gridsite.Conn = s.cluster.On(local.Conn{})
	if os.Getuid() == 0 {
		conn = asNobody{conn}
	}
	spec := jobSpec(t.Name(), "true")
	spec.Queue = "groups"
	err := slurm.New(conn, "/tmp/nowhere/root").Check(t.Context(), spec)
	var no *gridsite.Refused
	if !errors.As(err, &no) || no.Transient || !strings.Contains(no.Text, "User's group not permitted to use this partition") {
		t.Errorf("Check = %#v, want refused for good", err)
	}
}

// asNobody is a site at which root acts as the user nobody.
type asNobody struct{ gridsite.Conn }

func (c asNobody) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append([]string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"}, cmd.Argv...)
	return c.Conn.Run(ctx, cmd)
}

// Aliases in a site's profile, and variables that change the output of Slurm's commands, have no effect.
func TestSlurmEnvironment(t *testing.T) {
	t.Parallel()
	conn := withVariables{startSlurm(t).On(local.Conn{}), []string{"SLURM_CLUSTERS=elsewhere", "SQUEUE_FORMAT=%i", "SQUEUE_STATES=RUNNING",
		"SBATCH_PARTITION=nowhere", "SBATCH_CLUSTERS=elsewhere", "SCANCEL_STATE=RUNNING", "SACCT_FORMAT=User"}}
	s := slurm.New(conn, filepath.Join(t.TempDir(), "root"))
	spec := jobSpec(t.Name(), "exit 3")
	if _, err := s.Submit(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if job := gridsitetest.Await(t, s, spec.Tag); job.Exit == nil || *job.Exit != 3 {
		t.Errorf("it ended as %+v", job)
	}
}

// withVariables is a site at which a user has set such variables.
type withVariables struct {
	gridsite.Conn
	variables []string
}

func (c withVariables) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append(append([]string{"env"}, c.variables...), cmd.Argv...)
	return c.Conn.Run(ctx, cmd)
}

// A job that Slurm's accounting reports as running has ended if it is not in the queue: the end may never be reported
// to accounting.
func TestSlurmAccountingIsLate(t *testing.T) {
	t.Parallel()
	cluster := startSlurm(t)
	real := cluster.Command("squeue").Path
	forgets := gridsitetest.WithCommand(t, "squeue", `[ ! -e "$0.forgets" ] || exit 0; exec `+real+` "$@"`)
	knows := gridsitetest.WithCommand(t, "sacct", `while [ "$1" != -j ]; do shift; done; echo "$2|RUNNING"`)
	conn := gridsitetest.InPath{Conn: cluster.On(local.Conn{}), Bin: forgets.Bin + ":" + knows.Bin + ":" + filepath.Dir(real)}
	s := slurmSite{t, slurm.New(conn, filepath.Join(t.TempDir(), "root")), cluster, ""}
	tag, id := s.submit("sleep 1000", nil)
	s.running(tag)
	killBatchScript(t, id)
	gridsitetest.Until(t, "the job is over", func() bool { return s.command("squeue", "-h", "-j", id, "-t", "RUNNING,COMPLETING") == "" })
	if err := os.WriteFile(filepath.Join(forgets.Bin, "squeue.forgets"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if job := gridsitetest.Await(t, s, tag); job.Killed != gridsite.ByDisappeared || job.ID != id {
		t.Errorf("it ended as %+v", job)
	}
}

// No option text from a user is interpreted by a shell, and all of the text reaches Slurm.
func TestSlurmOptions(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	tag, id := s.submit("true", func(spec *gridsite.JobSpec) {
		spec.Queue, spec.Constraint, spec.GPUs, spec.MemoryMiB = "held", "fast", 1, 300
		spec.Hosts, spec.CPUs, spec.Walltime = 2, 2, 24*time.Hour-time.Minute
		spec.SiteOptions = []string{"--nice=7", "# a remark; touch $HOME/x", `#SBATCH --licenses=""`}
	})
	want := tag + "|" + tag + "|held|fast|2|2|300M|23:59:00|7|0"
	if got := s.command("squeue", "-h", "-j", id, "-O", "Name:|,Comment:|,Partition:|,Feature:|,NumNodes:|,cpus-per-task:|,MinMemory:|,TimeLimit:|,Nice:|,Requeue:"); got != want {
		t.Errorf("squeue says %s\n          want %s", got, want)
	}
	if said := s.command("scontrol", "show", "job", id); !strings.Contains(said, "gres:gpu:1") && !strings.Contains(said, "gpu:1") {
		t.Errorf("no GPU in %s", said)
	}
}

// A signal that Slurm was asked to send before the end reaches the job, which continues.
func TestSlurmNotice(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	const said = `trap 'echo noticed' USR1; trap 'echo again' USR2; echo ready >ready; while sleep 0.1; do :; done`
	tag, id := s.submit(said, nil)
	read := func(name, want string) {
		t.Helper()
		gridsitetest.Until(t, name+" to say "+want, func() bool {
			out, err := s.Read(t.Context(), tag, name)
			return err == nil && string(out) == want
		})
	}
	s.running(tag)
	read("ready", "ready\n")
	s.command("scancel", "--batch", "--signal=USR1", id)
	read("stdout", "noticed\n")
	s.command("scancel", "--batch", "--signal=USR2", id)
	read("stdout", "noticed\nagain\n")
	s.expect(tag, gridsite.Running, id)
}

// A job with two nodes starts on one of them, and its environment lists both. The first node is recorded for later
// readers.
func TestSlurmNodes(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	tag, _ := s.submit(`echo "$SLURMD_NODENAME $CORRAL_NODES $CORRAL_FANOUT"`, func(spec *gridsite.JobSpec) { spec.Hosts = 2 })
	gridsitetest.Await(t, s, tag)
	out, err := s.Read(t.Context(), tag, "stdout")
	if f := strings.Fields(string(out)); err != nil || len(f) != 4 || f[0] != f[1] || f[1] == f[2] || f[3] != "srun" {
		t.Errorf("it said %q, %v; want its own node, that one and another, srun", out, err)
	}
	if node, err := s.Read(t.Context(), tag, gridsite.NodeFile); err != nil || !strings.HasPrefix(string(out), strings.TrimSpace(string(node))+" ") {
		t.Errorf("it began on %q, %v; want the first of %s", node, err, out)
	}
}

// A job that is only tested is not queued.
func TestSlurmCheck(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	spec := jobSpec("tried", "true")
	spec.Queue = "urgent"
	if err := s.Check(t.Context(), spec); err != nil {
		t.Errorf("Check() = %v", err)
	}
	if out := s.command("squeue", "-h", "-n", "tried"); out != "" {
		t.Errorf("it was queued: %s", out)
	}
}

// An old sbatch has fewer options than a current one.
func TestSlurmOfOldVersion(t *testing.T) {
	t.Parallel()
	cluster := startSlurm(t)
	real := cluster.Command("sbatch").Path
	conn := gridsitetest.WithCommand(t, "sbatch", `case "$*" in
--help) `+real+` --help | grep -v -e parsable -e no-requeue -e gpus-per-node ;;
*--parsable* | *--no-requeue* | *--gpus-per-node*) echo "sbatch: unrecognized option" >&2; exit 1 ;;
*) exec `+real+` "$@" ;;
esac`)
	conn = gridsitetest.InPath{Conn: cluster.On(conn.Conn), Bin: conn.Bin + ":" + filepath.Dir(real)}
	s := slurm.New(conn, filepath.Join(t.TempDir(), "root"))
	spec := jobSpec(t.Name(), "exit 3")
	spec.GPUs = 1
	id, err := s.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if job := gridsitetest.Await(t, s, spec.Tag); job.ID != id || job.Exit == nil || *job.Exit != 3 {
		t.Errorf("submitted %s, ended as %+v", id, job)
	}
}
