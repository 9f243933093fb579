//go:build sites

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// accounting is the one Slurm of the tests of this package that keeps accounts, and enforces what they may. The user is
// in the account corral, and not in theirs, for which there is a partition, but for that of another cluster.
var accounting = sync.OnceValues(func() (*gridsitetest.Slurm, error) {
	slurm, err := gridsitetest.StartSlurm([]string{"ACCOUNTING=yes"}, "AccountingStorageEnforce=limits,qos", "PartitionName=theirs Nodes=ALL AllowAccounts=theirs")
	if err != nil {
		return nil, err
	}
	atEnd(slurm.Stop)
	me, err := osuser.Current()
	if err != nil {
		return nil, err
	}
	for _, change := range []string{
		"add cluster another", "add account theirs", "add user " + me.Username + " account=theirs cluster=another",
		"add qos forbidden", "add qos idle set MaxJobsPerUser=0", "add qos tight set MaxSubmitJobsPerUser=3 MaxJobsPerUser=2 MaxWall=00:30:00",
		"modify user where account=corral set qos+=tight,idle",
	} {
		if out, err := slurm.Command("sacctmgr", append([]string{"-i"}, strings.Fields(change)...)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("sacctmgr %s: %w: %s", change, err, out)
		}
	}
	return slurm, nil
})

// nodesUp is held by who takes nodes of it away, and for reading by who has jobs on whatever node Slurm chooses.
var nodesUp sync.RWMutex

// startAccounting is for tests that use a partition of their own for jobs that they look for in the queue.
func startAccounting(t testing.TB) *gridsitetest.Slurm {
	t.Helper()
	slurm, err := accounting()
	if err != nil {
		t.Fatal(err)
	}
	return slurm
}

// What the user may on another cluster that is in the same books is nothing here.
func TestSlurmAccountsOfAnotherCluster(t *testing.T) {
	t.Parallel()
	cluster := startAccounting(t)
	facts, err := slurm.New(cluster.On(local.Conn{}), t.TempDir()).Survey(t.Context(), corral.BatchOptions{Account: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range facts.Queues {
		if q.Closed != `the user has no account "theirs" for this queue` {
			t.Errorf("queue %s is closed: %q", q.Name, q.Closed)
		}
	}
}

// How a job ended that could not leave its status, and that the queue has forgotten, Slurm's accounting says.
func TestSlurmAccountingHasTheLastWord(t *testing.T) {
	t.Parallel()
	cluster := startAccounting(t)
	dir := t.TempDir()
	forgetful := forgetfulNode(t, cluster, dir)
	nodes := strings.Fields(say(t, cluster, "sinfo", "-h", "-N", "-p", "normal", "-o", "%N"))
	jobs := map[string]*endedJob{
		"killed":    {node: nodes[1], says: "FAILED", want: gridsite.ByDisappeared},
		"cancelled": {node: nodes[2], says: "CANCELLED by", want: gridsite.BySite},
		"crashed":   {node: nodes[3], says: "NODE_FAIL", want: gridsite.ByNode},
	}
	for name, j := range jobs {
		j.Batch = slurm.New(forgetful, filepath.Join(dir, name))
		j.start(t, name)
	}
	say(t, cluster, "scancel", "--batch", "--signal=KILL", jobs["killed"].id)
	if err := os.Rename(filepath.Join(dir, "cancelled"), filepath.Join(dir, "away")); err != nil { // its file server is
		t.Fatal(err)
	}
	say(t, cluster, "scancel", jobs["cancelled"].id)
	nodesUp.Lock()
	defer nodesUp.Unlock()
	say(t, cluster, "scontrol", "update", "NodeName="+nodes[3], "State=DOWN", "Reason=test")
	for name, j := range jobs {
		gridsitetest.Until(t, name+" to be "+j.says, func() bool {
			return strings.HasPrefix(say(t, cluster, "sacct", "-nPX", "-j", j.id, "-o", "State"), j.says) &&
				!slices.Contains(strings.Fields(say(t, cluster, "squeue", "-h", "-t", "running,completing", "-o", "%A")), j.id)
		})
	}
	_ = cluster.Command("scontrol", "update", "NodeName="+nodes[3], "State=RESUME").Run() // it may have come back by itself
	if err := errors.Join(os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "cancelled")), os.WriteFile(filepath.Join(dir, "forget"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, j := range jobs {
		found, err := j.Poll(t.Context(), []string{name})
		if got := found[name]; err != nil || got.Phase != gridsite.Ended || got.Killed != j.want || got.ID != j.id {
			t.Errorf("%s, %s to accounting, is polled as %+v, %v; want it ended by %q", name, j.says, got, err, j.want)
		}
	}
}

// An endedJob is one on a node of its own, and what is said of its end.
type endedJob struct {
	*slurm.Batch
	id, node, says string
	want           gridsite.Killed
}

// start waits until the job runs.
func (j *endedJob) start(t testing.TB, name string) {
	t.Helper()
	spec := gridsite.JobSpec{Tag: name, Argv: []string{"/bin/sleep", "1000"}, Hosts: 1, CPUs: 1, Walltime: 10 * time.Minute,
		BatchOptions: corral.BatchOptions{Queue: "urgent", SiteOptions: []string{"--nodelist=" + j.node}}}
	id, err := j.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	j.id = id
	t.Cleanup(func() {
		if err := j.Cancel(context.WithoutCancel(t.Context()), name, 0); err != nil {
			t.Error(err)
		}
	})
	gridsitetest.Until(t, name+" to run", func() bool {
		found, err := j.Poll(t.Context(), []string{name})
		return err == nil && found[name].Phase == gridsite.Running && !found[name].StartedAt.IsZero()
	})
}

// forgetfulNode is a head node whose squeue knows no job any more once there is a file "forget" in dir.
func forgetfulNode(t testing.TB, slurm *gridsitetest.Slurm, dir string) gridsite.Conn {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\n[ ! -e %s/forget ] || exit 0\nexec %s \"$@\"\n", dir, slurm.Command("squeue").Path)
	if err := os.WriteFile(filepath.Join(dir, "squeue"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path, _ := strings.CutPrefix(slurm.Environ()[0], "PATH=")
	return besides{slurm.On(local.Conn{}), "PATH=" + dir + ":" + path}
}

// besides is a site with another environment.
type besides struct {
	gridsite.Conn
	variable string
}

func (b besides) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append([]string{"env", b.variable}, cmd.Argv...)
	return b.Conn.Run(ctx, cmd)
}

// say runs one of Slurm's commands and returns what that says.
func say(t testing.TB, slurm *gridsitetest.Slurm, name string, args ...string) string {
	t.Helper()
	out, err := slurm.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}
