package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

func TestClusteredJobContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	j := sh(1, b.dir, "exit 1")
	j.Tasks = append(j.Tasks, shTask(2, "true"), shTask(3, "exit 7"))
	b.d.Submit([]execution.Job{j})
	b.sink.awaitResults(t, 3)
	results, returned := b.sink.seen()
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d %s %d", r.Index, r.Status, r.Exit))
	}
	if diff := cmp.Diff([]string{"1 failed 1", "2 done 0", "3 failed 7"}, got); diff != "" || len(returned) > 0 {
		t.Errorf("results (-want +got):\n%s\nreturned: %v", diff, returned)
	}
	await(t, "the job to be forgotten", b.idle)
}

func TestWorkerRunsAsManyTasksAsCPUs(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.CPUs = 3 })
	var jobs []execution.Job
	for seq := range int64(9) {
		// Each task counts the running tasks while it is running itself, and no task counts before three tasks have
		// started.
		jobs = append(jobs, sh(seq, b.dir, "d=../../data; : > $d/came.$CORRAL_TASK; : > $d/on.$CORRAL_TASK; "+
			"until [ $(ls $d | grep -c '^came') -ge 3 ]; do sleep 0.02; done; ls $d | grep -c '^on'; rm $d/on.$CORRAL_TASK"))
	}
	b.d.Submit(jobs)
	b.sink.awaitResults(t, 9)
	most := 0
	for seq := range 9 {
		n := 0
		fmt.Sscan(read(t, b.dir, executor.TasksDir, shTask(seq, "").ID+".1", "stdout"), &n)
		most = max(most, n)
	}
	if most != 3 {
		t.Errorf("at most %d tasks ran at once, want 3", most)
	}
}

func TestManyShortTasksInBatches(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.work(t, workerConfig("tag/1", b.address()))
	b.awaitWorkers(t, 2)
	const n = 300
	var jobs []execution.Job
	for seq := range int64(n) {
		jobs = append(jobs, noop(1, seq, b.dir))
	}
	b.d.Submit(jobs)
	results := b.sink.awaitResults(t, n)
	for seq, r := range results {
		if r.Status != execution.Done {
			t.Fatalf("job %d: %+v", seq, r)
		}
		if w := b.sink.workersOf(seq); len(w) == 0 || w[len(w)-1] != r.Worker { // after too long a wait
			t.Errorf("job %d ran on %s, its intents say %v", seq, r.Worker, w)
		}
	}
	await(t, "everything to be forgotten", b.idle)
}

func TestCancelledTaskIsKilled(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.d.Submit([]execution.Job{sh(1, b.dir, "echo $$ > ../../data/pid; sleep 64"), sh(2, b.dir, "true")})
	pid := b.awaitPID(t)
	b.d.Cancel(1)
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Cancelled || got.Signal != "SIGTERM" {
		t.Errorf("result = %+v, want cancelled", got)
	}
	awaitDeath(t, pid)
	if _, returned := b.sink.seen(); len(returned) != 1 || returned[0].Seq != 2 || returned[0].Started {
		t.Errorf("returned %v, want job 2, not started", returned)
	}
}

func TestKilledJobLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.d.Submit([]execution.Job{
		sh(1, b.dir, "echo $$ > ../../data/pid; sleep 64"), sh(2, b.dir, "sleep 64"), sh(3, b.dir, "true"),
	})
	pid := b.awaitPID(t)
	b.d.Cancel(1, 1, 2, 99)
	results := b.sink.awaitResults(t, 2)
	if got := results[1]; got.Status != execution.Cancelled || got.Signal != "SIGTERM" {
		t.Errorf("result = %+v, want cancelled", got)
	}
	if got := results[3]; got.Status != execution.Done {
		t.Errorf("result of the other = %+v, want done", got)
	}
	awaitDeath(t, pid)
	if _, returned := b.sink.seen(); len(returned) != 1 || returned[0].Seq != 2 || returned[0].Started {
		t.Errorf("returned %v, want job 2, not started", returned)
	}
}

// awaitPID waits until a task has written its process id to D/data/pid.
func (b *bed) awaitPID(t *testing.T) string {
	t.Helper()
	var pid string
	await(t, "the task to start", func() bool {
		content, _ := os.ReadFile(filepath.Join(b.dir, executor.DataDir, "pid"))
		pid = strings.TrimSpace(string(content))
		return pid != ""
	})
	return pid
}

func TestWorkerWithoutItsDispatcherKillsItsTasks(t *testing.T) {
	t.Parallel()
	for lease := 5 * time.Second; !killsWithoutDispatcher(t, lease); lease *= 2 { // longer on a busy machine
		t.Logf("the lease of %v was over before the dispatcher was", lease)
	}
}

// killsWithoutDispatcher reports whether the lease lasted until the dispatcher was stopped.
func killsWithoutDispatcher(t *testing.T, lease time.Duration) bool {
	t.Helper()
	b := newBed(t, dispatch.Config{Lease: lease}, nil)
	j := sh(1, b.dir, "echo $$ > ../../data/pid; sleep 65")
	j.Tasks[0].Outputs = []string{"stdout"}
	b.d.Submit([]execution.Job{j})
	pid := b.pidUnlessOver(t)
	b.cluster.stop()
	if b.over() {
		return false
	}
	awaitDeath(t, pid)
	absent(t, b.dir, executor.DataDir, "stdout")
	await(t, "the record of a task that was cut", func() bool {
		rec, _ := os.ReadFile(filepath.Join(b.dir, executor.TasksDir, j.Tasks[0].ID+".1", executor.RecordFile))
		return strings.Contains(string(rec), `"status":"cut"`)
	})

	// The worker keeps looking for a dispatcher, and delivers the result to it.
	again := newClusterAt(t, dispatch.Config{}, b.socket)
	sink := newRecorder()
	again.d.Attach(1, sink)
	again.d.Expect(1, "tag/0", []execution.Job{j})
	if got := sink.awaitResults(t, 1)[1]; got.Status != execution.Cut {
		t.Errorf("result = %+v, want cut", got)
	}
	return true
}

func TestRestartOfTheDispatcher(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.CPUs = 2 })
	jobs := []execution.Job{
		sh(1, b.dir, "echo $$ > ../../data/pid; while ! test -e ../../data/go1; do sleep 0.02; done"),
		sh(2, b.dir, "while ! test -e ../../data/go2; do sleep 0.02; done"),
	}
	b.d.Submit(jobs)
	b.awaitPID(t)
	await(t, "both to be assigned", func() bool { return len(b.sink.workersOf(2)) == 1 })
	b.cluster.stop()

	b.data(t, "go2", "") // the task ends while there is no dispatcher
	await(t, "task 2", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, executor.TasksDir, jobs[1].Tasks[0].ID+".1", executor.RecordFile))
		return err == nil
	})
	again := newClusterAt(t, dispatch.Config{}, b.socket)
	again.d.Attach(1, b.sink)
	again.d.Expect(1, "tag/0", append(jobs, sh(3, b.dir, "true")))
	b.sink.awaitResults(t, 1)
	b.data(t, "go1", "")
	results := b.sink.awaitResults(t, 2)
	if results[1].Status != execution.Done || results[2].Status != execution.Done {
		t.Errorf("results = %+v, want both done", results)
	}
	want := []returnedJob{{3, true, "its worker came back without it"}}
	if _, returned := b.sink.seen(); !slices.Equal(returned, want) {
		t.Errorf("returned %v, want %v", returned, want)
	}
}

func TestJobsOfAKilledWorkerRunElsewhere(t *testing.T) {
	t.Parallel()
	for lease := 5 * time.Second; !jobsGoElsewhere(t, lease); lease *= 2 { // longer on a busy machine
		t.Logf("the lease of %v was over while its worker lived", lease)
	}
}

// jobsGoElsewhere reports whether only the killed worker's lease expired.
func jobsGoElsewhere(t *testing.T, lease time.Duration) bool {
	t.Helper()
	c := newCluster(t, dispatch.Config{Lease: lease, Margin: 2 * time.Second})
	b := &bed{cluster: c, dir: runDir(t), sink: newRecorder()}
	c.d.Attach(1, b.sink)
	cmd := c.child(t, "tag/0")
	c.awaitWorkers(t, 1)
	c.d.Submit([]execution.Job{sh(1, b.dir, "echo $$ > ../../data/pid; sleep 66")})
	pid := b.pidUnlessOver(t)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if pid == "" {
		return false
	}
	awaitDeath(t, pid) // dies with its worker
	await(t, "the job's return", b.over)
	results, r := b.sink.seen()
	if len(results) > 0 {
		return false
	}
	if !r[0].Started {
		t.Errorf("returned %+v, want started", r)
	}
	c.child(t, "tag/0")
	j := sh(2, b.dir, "true")
	j.Tasks[0].Attempt = 2
	c.d.Submit([]execution.Job{j})
	await(t, "its end", func() bool { results, r := b.sink.seen(); return len(results) == 1 || len(r) > 1 })
	results, r = b.sink.seen()
	if len(r) > 1 || results[0].Status == execution.Cut {
		return false
	}
	if got := results[0]; got.Key.Seq != 2 || got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}
	return true
}

func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	drain := make(chan struct{})
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Drain = drain })
	j := sh(1, b.dir, "echo $$ > ../../data/pid; while ! test -e ../../data/go; do sleep 0.02; done")
	j.Tasks[0].Estimate = time.Millisecond // so short that other jobs wait behind it
	other := sh(2, b.dir, "true")
	other.Tasks[0].Estimate = time.Millisecond
	b.d.Submit([]execution.Job{j, other})
	b.awaitPID(t)
	close(drain)
	await(t, "the worker to drain", func() bool { w := b.d.Workers(); return len(w) == 1 && w[0].Draining })
	// If the first task began late, the other job has already been recalled, and waits in the queue.
	handedBack := func() bool {
		_, r := b.sink.seen()
		queued, _ := load(b.d)
		return len(r) == 1 || queued == 1
	}
	await(t, "job 2 to be handed back", handedBack)
	b.data(t, "go", "")
	<-b.hand.left
	if b.hand.reason != worker.Drained || b.hand.err != nil {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	results, returned := b.sink.seen()
	if len(results) != 1 || results[0].Status != execution.Done || !handedBack() || len(returned) == 1 && returned[0] != (returnedJob{2, false, "its worker leaves"}) {
		t.Errorf("results = %+v, returned = %+v", results, returned)
	}
	await(t, "the worker to be gone", func() bool { return len(b.d.Workers()) == 0 })
}

func TestWorkerLeavesBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for end := 6 * time.Second; !leavesBefore(t, end); end *= 2 { // longer on a busy machine
		t.Logf("%v were too little to begin a task, or to report its end", end)
	}
}

// leavesBefore reports whether the worker had time to begin a task before its end, and to report that the task was cut.
func leavesBefore(t *testing.T, end time.Duration) bool {
	t.Helper()
	began := time.Now()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.EndsIn, c.CPUs = end, 2 })
	long := sh(1, b.dir, "sleep 67")
	honest := sh(2, b.dir, "sleep 67")
	honest.Tasks[0].Estimate = 67 * time.Second
	b.d.Submit([]execution.Job{long, honest})
	<-b.hand.left
	if took := time.Since(began); took > end+patience || b.hand.reason != worker.Expired { // a busy machine is late
		t.Errorf("left after %v: %v; want within %v: expired", took, b.hand.reason, end)
	}
	if len(b.sink.workersOf(2)) != 0 {
		t.Error("a task was started that could not end in time")
	}
	if len(b.sink.workersOf(1)) == 0 {
		return false
	}
	await(t, "the task's end", b.over)
	results, _ := b.sink.seen()
	if len(results) == 0 {
		return false
	}
	if got := results[0]; got.Status != execution.Cut || !strings.Contains(got.Reason, "had to leave") {
		t.Errorf("result = %+v, want cut", got)
	}
	return true
}

func TestWorkerIsAskedToLeave(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	j := sh(1, b.dir, "echo $$ > ../../data/pid; sleep 68")
	j.Tasks = append(j.Tasks, shTask(2, "true"))
	b.d.Submit([]execution.Job{j})
	b.awaitPID(t)
	b.gate.ask(corral.AskCancel)
	<-b.hand.left
	if b.hand.reason != worker.Asked || b.hand.err != nil {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	await(t, "the second task's return", func() bool { _, r := b.sink.seen(); return len(r) == 1 })
	results, returned := b.sink.seen()
	if len(results) != 1 || results[0].Status != execution.Cut || len(returned) != 1 || returned[0].Started {
		t.Errorf("results = %+v, returned = %+v: want one cut, the rest not started", results, returned)
	}
}

func TestWorkerReportsThatItIsIdle(t *testing.T) {
	t.Parallel()
	told := make(chan time.Duration, 100)
	registered := make(chan struct{}, 100)
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) {
		c.Idle = func(d time.Duration) { told <- d }
		c.Registered = func() { registered <- struct{}{} }
	})
	<-registered
	if d := <-told; d <= 0 || d > time.Minute {
		t.Errorf("idle for %v at first", d)
	}
	b.d.Submit([]execution.Job{sh(1, b.dir, "while ! test -e ../../data/go; do sleep 0.02; done")})
	await(t, "the worker to be busy", func() bool { return <-told == 0 })
	b.data(t, "go", "")
	ended := b.sink.awaitResults(t, 1)[1].EndedAt
	var d time.Duration
	await(t, "the worker to be idle again", func() bool { d = <-told; return d != 0 })
	if most := time.Since(ended); d < 0 || d > most {
		t.Errorf("idle for %v after its task, which ended %v ago", d, most)
	}
}

func TestRefusedWorkerGivesUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Token = "wrong" })
	<-b.hand.left
	if b.hand.reason != worker.Refused || !errors.Is(b.hand.err, wire.ErrRefused) || corral.KindOf(b.hand.err) != corral.Unauthenticated {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	if !strings.Contains(b.hand.err.Error(), "the token is not that of tag") {
		t.Errorf("error %q does not have the gate's sentence", b.hand.err)
	}
}
