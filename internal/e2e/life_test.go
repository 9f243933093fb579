package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/examples/lambda"
)

// The tour of the README: up, two workers, the example, down. Nothing stays but the run's results.
func TestUpRunDown(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	id := u.must("glidein", "create", "--site", "local", "--hosts", "2", "--cpus", "1", "--walltime", "10m", "--wait", "-q")
	if _, err := strconv.Atoi(id); err != nil {
		t.Fatalf("glidein create -q printed %q, want one id", id)
	}
	if n := len(u.workers()); n != 2 {
		t.Fatalf("%d workers are registered when --wait returns, want 2", n)
	}
	file, err := filepath.Abs("../../examples/lambda/workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	run := read[corral.Run](u, "run", file)
	if run.State != corral.RunSucceeded || run.Tasks.Done != run.Tasks.Total {
		t.Fatalf("run: %+v", run)
	}
	got, err := os.ReadFile(filepath.Join(run.Dir, "data", lambda.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := lambda.Expected(); err != nil || string(got) != want {
		t.Errorf("report:\n%s\nwant (%v):\n%s", got, err, want)
	}
	u.must("down")
	if left := u.processes(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	for _, f := range files(t, u.dir) {
		if !strings.HasPrefix(f, "data") && f != "state" && f != "cache" && f != "run" {
			t.Errorf("left behind: %s", f)
		}
	}
	if _, err := os.Stat(filepath.Join(run.Dir, "data", lambda.ReportFile)); err != nil {
		t.Errorf("the result is gone: %v", err)
	}
}

// A worker killed in mid-run: its tasks are run again under a new attempt, and each output is there
// once.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_LEASE=5s")
	u.must("up")
	u.must("glidein", "create", "--site", "local", "--hosts", "2", "--wait", "-q")
	run := u.must("run", u.workflow("steps", u.behind("go", 2, steps(12, 100*time.Millisecond))...), "--detach", "-q")
	u.until("all others to wait", 2*time.Minute, func() bool { return u.run(run).Tasks.Done == 2 })
	var victim corral.Worker
	u.until("a busy worker", time.Minute, func() bool {
		for _, w := range u.workers() {
			if w.RunningTasks > 0 {
				victim = w
			}
		}
		return victim.PID != 0
	})
	u.kill(victim.PID)
	u.let("go")
	u.must("runs", "wait", run)
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued == 0 {
		t.Errorf("run is %s with %d requeued, want SUCCEEDED with some: %s", got.State, got.Report.Requeued, got.Reason)
	}
	again := 0
	for _, k := range read[[]api.TaskStatus](u, "runs", "tasks", run) {
		if k.Attempts > 1 {
			again++
			record := u.must("runs", "log", run, k.ID, "--file", "record.json")
			if want := fmt.Sprintf(`"attempt":%d,"status":"done"`, k.Attempts); !strings.Contains(record, want) {
				t.Errorf("task %s has %d attempts, and the record %s", k.ID, k.Attempts, record)
			}
		}
	}
	if again == 0 {
		t.Errorf("no task has a second attempt")
	}
	wantOutputs(t, got.Dir, 12)
	u.must("down")
}

func wantOutputs(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("t%03d", i)
		b, err := os.ReadFile(filepath.Join(dir, "data", id+".txt"))
		if err != nil || strings.TrimSpace(string(b)) != id {
			t.Errorf("output of %s is %q (%v)", id, b, err)
		}
	}
}

// corrald killed in mid-run and started again: the pilots are adopted, the run goes on by itself, no
// pilot is started twice and no finished task is repeated.
func TestCorraldKilled(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	id := u.must("glidein", "create", "--site", "local", "--hosts", "2", "--wait", "-q")
	tasks := u.behind("go", 4, steps(16, 100*time.Millisecond))
	for i := range tasks { // each execution leaves a line in a file that nobody cleans up
		tasks[i].script += fmt.Sprintf("; echo >>%s/executed.%s", u.dir, tasks[i].id)
	}
	run := u.must("run", u.workflow("steps", tasks...), "--detach", "-q")
	u.until("some tasks are done", 2*time.Minute, func() bool { return u.run(run).Tasks.Done >= 4 })
	before := pids(u.workers())
	u.kill(u.running())
	u.must("up")
	u.until("the workers to come back", time.Minute, func() bool { return len(u.workers()) == 2 })
	u.let("go")
	u.must("runs", "wait", run)

	got := u.run(run)
	if got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	if after := pids(u.workers()); after != before {
		t.Errorf("workers are processes %s, were %s", after, before)
	}
	if g := u.glidein(id); len(g.Attempts) != 1 || g.Attempts[0].State != corral.JobRunning {
		t.Errorf("attempts: %+v, want one, still running", g.Attempts)
	}
	for _, k := range tasks {
		if b, _ := os.ReadFile(u.dir + "/executed." + k.id); len(b) != 1 {
			t.Errorf("task %s was executed %d times", k.id, len(b))
		}
	}
	u.must("down")
}

func pids(workers []corral.Worker) string {
	var all []string
	for _, w := range workers {
		all = append(all, strconv.Itoa(w.PID))
	}
	return strings.Join(all, " ")
}

// A pilot whose walltime ends in mid-run leaves by itself before the limit, and with honest estimates
// no task is cut off by it.
func TestWalltimeEndsInMidRun(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	for walltime := 10 * time.Second; !u.endsInMidRun(walltime); walltime *= 2 { // a busy machine may need more
		if walltime > 2*time.Minute {
			t.Fatalf("a walltime of %s loses work, too", walltime)
		}
	}
	u.must("down")
}

// endsInMidRun has tasks on pilots of that walltime. It reports whether nothing was lost, and the first pilot was in time.
func (u *user) endsInMidRun(walltime time.Duration) bool {
	u.t.Helper()
	id := u.must("glidein", "create", "--site", "local", "--walltime", walltime.String(), "--resubmit", "forever", "--wait", "-q")
	tasks := steps(int(16*walltime/(10*time.Second)), 500*time.Millisecond)
	for i := range tasks {
		tasks[i].estimate = walltime * 3 / 10 // honest on a machine with much to do, too
	}
	run := u.must("run", u.workflow("steps", tasks...), "--detach", "-q")
	u.must("runs", "wait", run)
	got := u.run(run)
	if got.State != corral.RunSucceeded {
		u.t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	first := u.glidein(id).Attempts[0]
	if first.Outcome != corral.OutcomeExpired {
		u.t.Errorf("the first attempt ended as %q (%s), want expired", first.Outcome, first.Reason)
	}
	u.must("glidein", "remove", id, "--now", "--wait")
	lived := first.EndedAt.Sub(first.StartedAt)
	u.t.Logf("of a walltime of %s the first pilot lived %s; lost %s, requeued %d", walltime, lived, got.Report.LostWork, got.Report.Requeued)
	return got.Report.LostWork == 0 && got.Report.Requeued == 0 && lived < walltime
}

// An idle pilot finishes its glidein, whatever the resubmission: no submission storm.
func TestIdleForever(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	id := u.must("glidein", "create", "--site", "local", "--idle", "5s", "--resubmit", "forever", "-q")
	g := read[corral.Glidein](u, "glidein", "wait", id, "--for", "FINISHED", "--timeout", "10m")
	if len(g.Attempts) != 1 || g.Attempts[0].Outcome != corral.OutcomeIdle {
		t.Errorf("attempts: %+v, want one that was idle", g.Attempts)
	}
	u.must("down")
}

// --resubmit 2 is three attempts, no more, no fewer.
func TestResubmitTwice(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	id := u.must("glidein", "create", "--site", "local", "--resubmit", "2", "--walltime", "20s", "-q")
	g := read[corral.Glidein](u, "glidein", "wait", id, "--for", "FINISHED", "--timeout", "10m")
	if len(g.Attempts) != 3 {
		t.Fatalf("%d attempts, want 3: %+v", len(g.Attempts), g.Attempts)
	}
	for _, a := range g.Attempts {
		if a.Outcome != corral.OutcomeExpired {
			t.Errorf("attempt %d ended as %s (%s)", a.Number, a.Outcome, a.Reason)
		}
	}
	u.must("down")
}

// Ctrl-C only stops following a run; with --cancel-on-interrupt it ends it.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	u.must("glidein", "create", "--site", "local", "--wait", "-q")
	file := u.workflow("long", task{id: "long", script: "sleep 600", estimate: time.Minute})
	for _, tt := range []struct {
		flag string
		want corral.RunState
	}{{"--retries=0", corral.RunRunning}, {"--cancel-on-interrupt", corral.RunCancelled}} {
		cmd := u.command("run", file, tt.flag)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var run corral.Run
		u.until("the task runs", time.Minute, func() bool {
			for _, r := range read[[]corral.Run](u, "runs", "list") {
				run = r
			}
			return run.Tasks.Running == 1
		})
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%s: exit code %d, want 130", tt.flag, code)
		}
		id := strconv.FormatInt(int64(run.ID), 10)
		if got := u.run(id).State; got != tt.want {
			t.Errorf("%s: the run is %s, want %s", tt.flag, got, tt.want)
		}
		u.corral("runs", "cancel", id, "--wait")
	}
	u.must("down")
}
