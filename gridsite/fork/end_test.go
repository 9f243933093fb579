package fork_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
)

// These tests check how the dialect detects that a job has ended.

// countingConn counts the commands run at the site.
type countingConn struct {
	gridsite.Conn
	runs int
}

func (c *countingConn) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	c.runs++
	return c.Conn.Run(ctx, cmd)
}

func TestForkPollsAThousandInOneRun(t *testing.T) {
	t.Parallel()
	conn := &countingConn{Conn: local.Conn{}}
	root := t.TempDir()
	batch := fork.New(conn, root)
	if _, err := batch.Submit(t.Context(), shell("job-0", "exit 0")); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Await(t, batch, "job-0")
	var tags []string
	for i := range 1000 {
		tags = append(tags, fmt.Sprint("job-", i))
		if i > 0 && i < 900 { // the rest is unknown
			copyJob(t, root, tags[0], tags[i])
		}
	}
	conn.runs = 0
	jobs, err := batch.Poll(t.Context(), tags)
	if err != nil || len(jobs) != 900 || conn.runs != 1 {
		t.Errorf("%d jobs, %v in %d runs; want 900 in one", len(jobs), err, conn.runs)
	}
	for tag, job := range jobs {
		if job.Tag != tag || job.Phase != gridsite.Ended {
			t.Fatalf("%s is %+v", tag, job)
		}
	}
}

// copyJob copies those files of an ended job that Poll examines to a job with another tag.
func copyJob(t *testing.T, root, from, to string) {
	t.Helper()
	control := filepath.Join(root, "jobs", to, ".corral")
	if err := os.MkdirAll(control, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leader", "status"} {
		if err := os.Link(filepath.Join(root, "jobs", from, ".corral", name), filepath.Join(control, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A job may signal its whole process group, as many scripts do when they end.
func TestForkJobKillsItsGroup(t *testing.T) {
	t.Parallel()
	batch := fork.New(local.Conn{}, t.TempDir())
	if _, err := batch.Submit(t.Context(), shell("job", "kill -KILL 0")); err != nil {
		t.Fatal(err)
	}
	if job := gridsitetest.Await(t, batch, "job"); job.Exit == nil || *job.Exit != 137 || job.Killed != gridsite.NotKilled {
		t.Errorf("ended as %+v, want exit status 137", job)
	}
}

// A cancelled job ends its processes itself: only its first process receives the signal, so that a pilot can report why
// each of its tasks ended.
func TestForkCancelTellsTheFirstProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	batch := fork.New(local.Conn{}, root)
	script := `trap 'wait; exit 0' TERM
sh -c 'trap "echo told" TERM; >ready; n=0; while [ $n -lt 20 ]; do sleep 0.05; n=$((n+1)); done; echo untold' &
wait`
	if _, err := batch.Submit(t.Context(), shell("job", script)); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(root, "jobs", "job", "ready"))
	if err := batch.Cancel(t.Context(), "job", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if out, err := batch.Read(t.Context(), "job", "stdout"); string(out) != "untold\n" {
		t.Errorf("its child wrote %q (%v), want it to end untold", out, err)
	}
}

func TestForkWalltimeKillsResistingJob(t *testing.T) {
	t.Parallel()
	batch := fork.New(local.Conn{}, t.TempDir())
	batch.SetGrace(time.Second)
	for limit := gridsitetest.Walltime; ; limit *= 2 { // on a busy machine a job may take longer to resist
		spec := shell("job-"+limit.String(), `trap "" TERM; while :; do sleep 60; done`)
		spec.Walltime = limit
		if _, err := batch.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		job := gridsitetest.Await(t, batch, spec.Tag)
		if job.Killed == gridsite.ByWalltime && job.Exit != nil && *job.Exit == 128+15 && limit < gridsitetest.Patience {
			continue
		}
		if job.Killed != gridsite.ByWalltime || job.Exit == nil || *job.Exit != 137 {
			t.Errorf("ended as %+v, want it killed by the walltime", job)
		}
		return
	}
}

// The walltime is enforced even if the leader is dead and no client polls.
func TestForkWalltimeWithoutLeader(t *testing.T) {
	t.Parallel()
	for limit := gridsitetest.Walltime; !endsWithoutLeader(t, limit); limit *= 2 { // as a busy machine may need
		if limit > gridsitetest.Patience {
			t.Fatalf("a walltime of %s is not enforced without a leader", limit)
		}
	}
}

// endsWithoutLeader reports whether a job whose leader was killed was asked to end at its walltime.
func endsWithoutLeader(t *testing.T, limit time.Duration) bool {
	t.Helper()
	root := t.TempDir()
	conn := local.Conn{}
	batch := fork.New(conn, root)
	spec := shell("job", `trap "touch asked; exit" TERM; touch ready; while :; do sleep 0.1; done`)
	spec.Walltime = limit
	id, err := batch.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "jobs/job")
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	gridsitetest.Until(t, "the job to be ready, or over", func() bool { return there("ready") || there(".corral/status") })
	pid, _, _ := strings.Cut(id, ".")
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "kill -KILL $0", pid}})
	if err != nil {
		t.Fatal(err)
	}
	// The process that monitors the job without a leader asks the job to end before a client polls.
	gridsitetest.Until(t, "the job to be asked, or killed", func() bool { return there("asked") || len(processesOf(t, dir)) == 0 })
	if job := gridsitetest.Await(t, batch, "job"); job.Killed != gridsite.ByWalltime {
		t.Errorf("ended as %+v, want it killed by the walltime", job)
	}
	return res.Exit == 0 && there("asked")
}

// processesOf returns the processes whose environment contains a job's directory.
func processesOf(t *testing.T, dir string) (pids []string) {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range environs {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), "="+dir+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	gridsitetest.Until(t, path, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// A failed scan of the processes must not count as a scan that found none.
func TestForkCancelWithoutLooking(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	blind := fork.New(gridsitetest.WithCommand(t, "awk", "exit 1"), root)
	batch := fork.New(local.Conn{}, root)
	if _, err := batch.Submit(t.Context(), shell("job", "sleep 600")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := blind.Cancel(ctx, "job", 0); err == nil {
		t.Error("Cancel without awk succeeded")
	}
	if err := batch.Cancel(t.Context(), "job", 0); err != nil {
		t.Error(err)
	}
}

// abandoned returns a job whose leader file has the fields PID, BIRTH, BOOT, STARTED, DEADLINE and HOST, modified by
// edit. The job's leader and other processes have ended.
func abandoned(t *testing.T, edit func(fields []string)) *fork.Batch {
	t.Helper()
	root, conn := t.TempDir(), local.Conn{}
	batch := fork.New(conn, root)
	id, err := batch.Submit(t.Context(), shell("job", "sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	gridsitetest.Kill(t, conn, id)
	gridsitetest.Await(t, batch, "job")
	control := filepath.Join(root, "jobs/job/.corral")
	b, err := os.ReadFile(filepath.Join(control, "leader"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b))
	edit(fields)
	if err := os.WriteFile(filepath.Join(control, "leader"), []byte(strings.Join(fields, " ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(control, "status")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(control, "job"), []byte(fields[0]+" "+fields[1]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return batch
}

func TestForkLeaderGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		edit   func(fields []string)
		phase  gridsite.Phase
		cancel string // part of Cancel's error
	}{
		// This is the test's own pid, with another start time: the process must not be signalled.
		{"pid given away", func(f []string) { f[0] = fmt.Sprint(os.Getpid()) }, gridsite.Ended, ""},
		// The same applies to the session: this is the test's own session id, but from another boot.
		{"machine rebooted", func(f []string) { f[0], f[2] = fmt.Sprint(os.Getpid()), "another-boot" }, gridsite.Ended, ""},
		{"other machine", func(f []string) { f[2], f[5] = "another-boot", "elsewhere" }, gridsite.Running, "runs on elsewhere"},
		{"other machine, walltime over", func(f []string) { f[2], f[4], f[5] = "another-boot", "1000", "elsewhere" }, gridsite.Ended, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := abandoned(t, c.edit)
			jobs, err := batch.Poll(t.Context(), []string{"job"})
			if err != nil {
				t.Fatal(err)
			}
			job := jobs["job"]
			if job.Phase != c.phase || job.Phase == gridsite.Ended && job.Killed != gridsite.ByDisappeared {
				t.Errorf("polled %+v, want %s", job, c.phase)
			}
			err = batch.Cancel(t.Context(), "job", 0)
			if (err == nil) != (c.cancel == "") || err != nil && !strings.Contains(err.Error(), c.cancel) {
				t.Errorf("Cancel = %v, want an error with %q", err, c.cancel)
			}
		})
	}
}

// A job's output is returned up to a limit; beyond that, only its end is returned.
func TestForkReadsTheEnd(t *testing.T) {
	t.Parallel()
	batch := fork.New(local.Conn{}, t.TempDir())
	script := fmt.Sprintf("yes | head -c %d; echo end", jobdir.MaxRead)
	if _, err := batch.Submit(t.Context(), shell("job", script)); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Await(t, batch, "job")
	b, err := batch.Read(t.Context(), "job", "stdout")
	if err != nil || len(b) != jobdir.MaxRead || !strings.HasSuffix(string(b), "y\nend\n") {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
}
