package pool

import (
	"context"
	"encoding/json"
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
)

// hand is a worker that runs inside the test.
type hand struct {
	cancel context.CancelFunc
	left   chan struct{}
	reason LeaveReason
	err    error
}

// work starts a worker, which leaves with the test at the latest.
func (c *cluster) work(t *testing.T, cfg WorkerConfig) *hand {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &hand{cancel: cancel, left: make(chan struct{})}
	go func() {
		defer close(h.left)
		h.reason, h.err = RunWorker(ctx, testLog(t), cfg)
	}()
	t.Cleanup(func() {
		cancel()
		<-h.left
	})
	return h
}

func (c *cluster) address() string { return "unix:" + c.socket }

// bed is a cluster with one worker and one attached run.
type bed struct {
	*cluster
	dir  string
	sink *recorder
	hand *hand
}

func newBed(t *testing.T, cfg Config, adapt func(*WorkerConfig)) *bed {
	b := &bed{cluster: newCluster(t, cfg), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	wc := workerConfig("tag/0", b.address())
	if adapt != nil {
		adapt(&wc)
	}
	b.hand = b.work(t, wc)
	return b
}

// runOne runs one task and returns its result and its directory.
func (b *bed) runOne(t *testing.T, task Task) (Result, string) {
	t.Helper()
	b.d.Submit([]Job{{Run: 1, Seq: 1, Dir: b.dir, CPUs: 1, MemoryMiB: 1, Tasks: []Task{task}}})
	return b.sink.awaitResults(t, 1)[1], filepath.Join(b.dir, tasksDir, fmt.Sprintf("%s.%d", task.ID, task.Attempt))
}

func (b *bed) data(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(b.dir, dataDir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func absent(t *testing.T, elem ...string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(elem...)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", filepath.Join(elem...), err)
	}
}

func TestTaskFromInputsToOutputs(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	b.data(t, "in/a.txt", "alpha\n")
	b.data(t, "b.txt", "beta\n")
	b.data(t, "out/c.txt", "left by an attempt that was cut\n")
	res, dir := b.runOne(t, Task{
		Index: 5, ID: "join", Attempt: 2, Estimate: time.Second,
		Argv:   []string{"sh", "-c", "cat in/a.txt - > out/c.txt; cat b.txt; echo warned >&2"},
		Inputs: []string{"in/a.txt", "b.txt"}, Outputs: []string{"out/c.txt", "log"},
		Stdin: "b.txt", Stdout: "log",
	})
	if res.Status != Done || res.Exit != 0 || res.Index != 5 || res.Attempt != 2 || res.Worker != "tag/0" || res.Reason != "" {
		t.Errorf("result = %+v, want done", res)
	}
	if res.EndedAt.Before(res.StartedAt) || res.MaxRSSKiB <= 0 || res.UserCPU+res.SysCPU <= 0 {
		t.Errorf("result = %+v, want times and usage", res)
	}
	if got := read(t, b.dir, dataDir, "out/c.txt"); got != "alpha\nbeta\n" {
		t.Errorf("out/c.txt = %q", got)
	}
	if got := read(t, b.dir, dataDir, "log"); got != "beta\n" {
		t.Errorf("log = %q", got)
	}
	if got := read(t, dir, "stderr"); got != "warned\n" {
		t.Errorf("stderr = %q", got)
	}
	if link, err := os.Readlink(filepath.Join(dir, "in/a.txt")); err != nil || link != "../../../data/in/a.txt" {
		t.Errorf("input is linked to %q, %v; want a relative link", link, err)
	}
	var rec struct {
		Task string
		Host string
		Result
	}
	if err := json.Unmarshal([]byte(read(t, dir, recordFile)), &rec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res, rec.Result); diff != "" || rec.Task != "join" {
		t.Errorf("record differs from the result (-result +record):\n%s", diff)
	}
}

func TestTaskThatFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		task Task
		want string // in the reason
		exit int
	}{
		{"exit status", Task{Argv: []string{"sh", "-c", "echo x > out; exit 3"}, Outputs: []string{"out"}}, "exit status 3", 3},
		{"signal", Task{Argv: []string{"sh", "-c", "kill -SEGV $$"}}, "SIGSEGV", -1},
		{"missing output", Task{Argv: []string{"sh", "-c", "echo x > out"}, Outputs: []string{"out", "gone.txt"}}, `output "gone.txt" is missing`, 0},
		{"linked output", Task{Argv: []string{"ln", "-s", "stdout", "out"}, Outputs: []string{"out"}}, `output "out" is a symbolic link`, 0},
		{"missing input", Task{Argv: []string{"true"}, Inputs: []string{"nowhere.txt"}}, `input "nowhere.txt" is missing`, -1},
		{"missing stdin", Task{Argv: []string{"true"}, Stdin: "nothing"}, `standard input "nothing"`, -1},
		{"no such command", Task{Argv: []string{"corral-no-such-command"}}, `command "corral-no-such-command" is not found`, -1},
		{"not executable", Task{Argv: []string{"./in.txt"}, Inputs: []string{"in.txt"}}, `command "./in.txt" cannot be executed: permission denied`, -1},
		{"no command", Task{}, "no command", -1},
		{"output outside", Task{Argv: []string{"true"}, Outputs: []string{"../../evil"}}, "leads out of", -1},
		{"input outside", Task{Argv: []string{"true"}, Inputs: []string{"/etc/passwd"}}, "leads out of", -1},
		{"directory outside", Task{ID: "../x", Argv: []string{"true"}}, "cannot be the name of a directory", -1},
		{"input is output", Task{Argv: []string{"true"}, Inputs: []string{"in.txt"}, Outputs: []string{"in.txt"}}, "both input and output", -1},
		{"timeout", Task{Argv: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond}, "timed out after 50ms", -1},
		{"timeout that is ignored politely", Task{Argv: []string{"sh", "-c", "trap 'echo x > out; exit 0' TERM; while :; do sleep 0.01; done"}, Outputs: []string{"out"}, Timeout: 300 * time.Millisecond}, "timed out", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, Config{}, nil)
			b.data(t, "in.txt", "not a program\n")
			tt.task.Attempt, tt.task.Estimate = 1, time.Second
			if tt.task.ID == "" {
				tt.task.ID = "t"
			}
			res, dir := b.runOne(t, tt.task)
			if res.Status != Failed || res.Exit != tt.exit || !strings.Contains(res.Reason, tt.want) {
				t.Errorf("result = %+v, want failure with %q and exit %d", res, tt.want, tt.exit)
			}
			absent(t, b.dir, dataDir, "out")
			if tt.exit >= 0 {
				read(t, dir, recordFile)
			}
		})
	}
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	res, dir := b.runOne(t, Task{
		ID: "t", Attempt: 1, Estimate: time.Second, Timeout: 300 * time.Millisecond,
		Argv: []string{"sh", "-c", "trap '' TERM; sleep 61 & echo $! > child; wait; wait; sleep 62"},
	})
	if res.Status != Failed || res.Signal != "SIGKILL" {
		t.Errorf("result = %+v, want failure by SIGKILL", res)
	}
	if took := res.EndedAt.Sub(res.StartedAt); took < termGrace {
		t.Errorf("killed after %v, before the grace was over", took)
	}
	awaitDeath(t, strings.TrimSpace(read(t, dir, "child")))
}

func TestGroupDiesWithItsLeader(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	res, dir := b.runOne(t, Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"sh", "-c", "sleep 63 & echo $! > child"}})
	if res.Status != Done {
		t.Errorf("result = %+v, want done", res)
	}
	awaitDeath(t, strings.TrimSpace(read(t, dir, "child")))
}

// awaitDeath waits until a process is gone, or a zombie that its new parent has not reaped.
func awaitDeath(t *testing.T, pid string) {
	t.Helper()
	await(t, "death of process "+pid, func() bool {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

func TestEnvironmentIsCleanAndSmall(t *testing.T) {
	t.Setenv("POOL_TEST_LEAK", "x")
	scratch := t.TempDir()
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.Scratch = scratch })
	_, dir := b.runOne(t, Task{
		ID: "t", Attempt: 4, Estimate: time.Second, Argv: []string{"env"},
		Env: []string{"MINE=1", "LANG=xx", "CORRAL_TASK=forged"},
	})
	var names []string
	got := map[string]string{}
	for line := range strings.Lines(read(t, dir, "stdout")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		got[name] = value
	}
	want := map[string]string{
		"CORRAL_RUN": "1", "CORRAL_TASK": "t", "CORRAL_ATTEMPT": "4", "CORRAL_CPUS": "1", "MINE": "1", "LANG": "xx", "TMPDIR": scratch,
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"),
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	for _, name := range names {
		if _, ok := want[name]; !ok && name != "USER" && name != "PWD" {
			t.Errorf("%s is in the environment", name)
		}
	}
	if strings.Contains(read(t, dir, "stdout"), testToken) {
		t.Error("the token is in the environment")
	}
}

func TestDirectoryOfAnInstanceThatDiedIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	if err := os.MkdirAll(filepath.Join(b.dir, tasksDir, "t.1", "rubbish"), 0o777); err != nil {
		t.Fatal(err)
	}
	res, dir := b.runOne(t, Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"ls"}})
	if got := read(t, dir, "stdout"); res.Status != Done || strings.Contains(got, "rubbish") {
		t.Errorf("result = %+v, directory has %q", res, got)
	}
}

func TestOutputDirectoryReplacesAnOldOne(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	b.data(t, "d/old", "x")
	res, _ := b.runOne(t, Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"sh", "-c", "mkdir d; echo y > d/new"}, Outputs: []string{"d"}})
	if res.Status != Done || read(t, b.dir, dataDir, "d/new") != "y\n" {
		t.Errorf("result = %+v", res)
	}
	absent(t, b.dir, dataDir, "d/old")
}

func TestClusteredJobGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	j := sh(1, b.dir, "exit 1")
	j.Tasks = append(j.Tasks, shTask(2, "true"), shTask(3, "exit 7"))
	b.d.Submit([]Job{j})
	b.sink.awaitResults(t, 3)
	results, returned := b.sink.seen()
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d %s %d", r.Index, r.Status, r.Exit))
	}
	if diff := cmp.Diff([]string{"1 failed 1", "2 done 0", "3 failed 7"}, got); diff != "" || len(returned) > 0 {
		t.Errorf("results (-want +got):\n%s\nreturned: %v", diff, returned)
	}
	await(t, "the job to be forgotten", func() bool { return b.d.Stats().Held == 0 })
}

func TestWorkerRunsAsManyAsItHasCPUs(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.CPUs = 3 })
	var jobs []Job
	for seq := range int64(9) {
		// Each task is there while it counts who else is.
		jobs = append(jobs, sh(seq, b.dir, "d=../../data; : > $d/on.$CORRAL_TASK; ls $d | grep -c '^on' ; sleep 0.1; rm $d/on.$CORRAL_TASK"))
	}
	b.d.Submit(jobs)
	b.sink.awaitResults(t, 9)
	most := 0
	for seq := range 9 {
		n := 0
		fmt.Sscan(read(t, b.dir, tasksDir, shTask(seq, "").ID+".1", "stdout"), &n)
		most = max(most, n)
	}
	if most != 3 {
		t.Errorf("at most %d tasks ran at once, want 3", most)
	}
}

func TestManyShortTasksInBatches(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	b.work(t, workerConfig("tag/1", b.address()))
	b.awaitWorkers(t, 2)
	const n = 300
	var jobs []Job
	for seq := range int64(n) {
		jobs = append(jobs, noop(1, seq, b.dir))
	}
	b.d.Submit(jobs)
	results := b.sink.awaitResults(t, n)
	for seq, r := range results {
		if r.Status != Done {
			t.Fatalf("job %d: %+v", seq, r)
		}
		if w := b.sink.workersOf(seq); len(w) != 1 || w[0] != r.Worker {
			t.Errorf("job %d ran on %s, its intent says %v", seq, r.Worker, w)
		}
	}
	await(t, "everything to be forgotten", func() bool { return b.d.Stats().Held == 0 })
}

func TestCancelledTaskIsKilled(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	b.d.Submit([]Job{sh(1, b.dir, "echo $$ > ../../data/pid; sleep 64"), sh(2, b.dir, "true")})
	pid := b.awaitPID(t)
	b.d.Cancel(1)
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != Cancelled || got.Signal != "SIGKILL" {
		t.Errorf("result = %+v, want cancelled", got)
	}
	awaitDeath(t, pid)
	if _, returned := b.sink.seen(); len(returned) != 1 || returned[0].Seq != 2 || returned[0].Started {
		t.Errorf("returned %v, want job 2, not started", returned)
	}
}

// awaitPID waits for a task to tell its process id through D/data/pid.
func (b *bed) awaitPID(t *testing.T) string {
	t.Helper()
	var pid string
	await(t, "the task to start", func() bool {
		content, _ := os.ReadFile(filepath.Join(b.dir, dataDir, "pid"))
		pid = strings.TrimSpace(string(content))
		return pid != ""
	})
	return pid
}

func TestWorkerWithoutItsDispatcherKillsItsTasks(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{Lease: 300 * time.Millisecond, Margin: 200 * time.Millisecond}, nil)
	j := sh(1, b.dir, "echo $$ > ../../data/pid; sleep 65")
	j.Tasks[0].Outputs = []string{"stdout"}
	b.d.Submit([]Job{j})
	pid := b.awaitPID(t)
	b.cluster.stop()
	awaitDeath(t, pid)
	absent(t, b.dir, dataDir, "stdout")
	await(t, "the record", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, tasksDir, j.Tasks[0].ID+".1", recordFile))
		return err == nil
	})
	if rec := read(t, b.dir, tasksDir, j.Tasks[0].ID+".1", recordFile); !strings.Contains(rec, `"status":"cut"`) {
		t.Errorf("record = %s, want cut", rec)
	}

	// It looks on for a dispatcher, and brings it the result.
	again := newClusterAt(t, Config{}, b.socket)
	sink := newRecorder()
	again.d.Attach(1, sink)
	again.d.Expect(1, "tag/0", []Job{j})
	if got := sink.awaitResults(t, 1)[1]; got.Status != Cut {
		t.Errorf("result = %+v, want cut", got)
	}
}

func TestRestartOfTheDispatcher(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.CPUs = 2 })
	jobs := []Job{
		sh(1, b.dir, "echo $$ > ../../data/pid; while ! test -e ../../data/go1; do sleep 0.02; done"),
		sh(2, b.dir, "while ! test -e ../../data/go2; do sleep 0.02; done"),
	}
	b.d.Submit(jobs)
	b.awaitPID(t)
	await(t, "both to be assigned", func() bool { return len(b.sink.workersOf(2)) == 1 })
	b.cluster.stop()

	b.data(t, "go2", "") // ends while there is no dispatcher
	await(t, "task 2", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, tasksDir, jobs[1].Tasks[0].ID+".1", recordFile))
		return err == nil
	})
	again := newClusterAt(t, Config{}, b.socket)
	again.d.Attach(1, b.sink)
	again.d.Expect(1, "tag/0", append(jobs, sh(3, b.dir, "true")))
	b.sink.awaitResults(t, 1)
	b.data(t, "go1", "")
	results := b.sink.awaitResults(t, 2)
	if results[1].Status != Done || results[2].Status != Done {
		t.Errorf("results = %+v, want both done", results)
	}
	want := []returnedJob{{3, true, "its worker came back without it"}}
	if _, returned := b.sink.seen(); !slices.Equal(returned, want) {
		t.Errorf("returned %v, want %v", returned, want)
	}
}

func TestKilledWorkersJobsGoElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{Lease: 400 * time.Millisecond, Margin: 200 * time.Millisecond})
	b := &bed{cluster: c, dir: runDir(t), sink: newRecorder()}
	c.d.Attach(1, b.sink)
	cmd := c.child(t, "tag/0")
	c.awaitWorkers(t, 1)
	c.d.Submit([]Job{sh(1, b.dir, "echo $$ > ../../data/pid; sleep 66")})
	pid := b.awaitPID(t)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitDeath(t, pid) // with its worker
	await(t, "the job's return", func() bool { _, r := b.sink.seen(); return len(r) == 1 })
	if _, r := b.sink.seen(); !r[0].Started {
		t.Errorf("returned %+v, want started", r)
	}
	c.child(t, "tag/0")
	j := sh(2, b.dir, "true")
	j.Tasks[0].Attempt = 2
	c.d.Submit([]Job{j})
	if got := b.sink.awaitResults(t, 1)[2]; got.Status != Done {
		t.Errorf("result = %+v, want done", got)
	}
}

func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	drain := make(chan struct{})
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.Drain = drain })
	j := sh(1, b.dir, "echo $$ > ../../data/pid; while ! test -e ../../data/go; do sleep 0.02; done")
	j.Tasks[0].Estimate = time.Millisecond // so that others wait behind it
	other := sh(2, b.dir, "true")
	other.Tasks[0].Estimate = time.Millisecond
	b.d.Submit([]Job{j, other})
	b.awaitPID(t)
	close(drain)
	await(t, "job 2 to be handed back", func() bool { _, r := b.sink.seen(); return len(r) == 1 })
	if w := b.d.Workers(); len(w) != 1 || !w[0].Draining {
		t.Errorf("Workers() = %+v, want one that drains", w)
	}
	b.data(t, "go", "")
	<-b.hand.left
	if b.hand.reason != LeaveDrained || b.hand.err != nil {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	results, returned := b.sink.seen()
	if len(results) != 1 || results[0].Status != Done || !slices.Equal(returned, []returnedJob{{2, false, "its worker leaves"}}) {
		t.Errorf("results = %+v, returned = %+v", results, returned)
	}
	await(t, "the worker to be gone", func() bool { return len(b.d.Workers()) == 0 })
}

func TestWorkerLeavesBeforeItsEnd(t *testing.T) {
	t.Parallel()
	const end = 3 * time.Second
	began := time.Now()
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.EndsIn, c.CPUs = end, 2 })
	long := sh(1, b.dir, "sleep 67")
	honest := sh(2, b.dir, "sleep 67")
	honest.Tasks[0].Estimate = 67 * time.Second
	b.d.Submit([]Job{long, honest})
	<-b.hand.left
	if took := time.Since(began); took > end || b.hand.reason != LeaveExpired {
		t.Errorf("left after %v: %v; want within %v: expired", took, b.hand.reason, end)
	}
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != Cut || !strings.Contains(got.Reason, "had to leave") {
		t.Errorf("result = %+v, want cut", got)
	}
	if len(b.sink.workersOf(2)) != 0 {
		t.Error("a task was started that could not end in time")
	}
}

func TestWorkerIsAskedToLeave(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, nil)
	j := sh(1, b.dir, "echo $$ > ../../data/pid; sleep 68")
	j.Tasks = append(j.Tasks, shTask(2, "true"))
	b.d.Submit([]Job{j})
	b.awaitPID(t)
	b.d.Leave(1)
	<-b.hand.left
	if b.hand.reason != LeaveAsked || b.hand.err != nil {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	await(t, "the second task's return", func() bool { _, r := b.sink.seen(); return len(r) == 1 })
	results, returned := b.sink.seen()
	if len(results) != 1 || results[0].Status != Cut || len(returned) != 1 || returned[0].Started {
		t.Errorf("results = %+v, returned = %+v: want one cut, the rest not started", results, returned)
	}
}

func TestWorkerTellsWhenItIsIdle(t *testing.T) {
	t.Parallel()
	told := make(chan time.Duration, 100)
	registered := make(chan struct{}, 100)
	b := newBed(t, Config{}, func(c *WorkerConfig) {
		c.Idle = func(d time.Duration) { told <- d }
		c.Registered = func() { registered <- struct{}{} }
	})
	<-registered
	if d := <-told; d <= 0 || d > time.Minute {
		t.Errorf("idle for %v at first", d)
	}
	b.d.Submit([]Job{sh(1, b.dir, "sleep 0.3")})
	await(t, "the worker to be busy", func() bool { return <-told == 0 })
	b.sink.awaitResults(t, 1)
	if d := <-told; d <= 0 || d > 2*time.Second {
		t.Errorf("idle for %v after its task", d)
	}
}

func TestRefusedWorkerGivesUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{}, func(c *WorkerConfig) { c.Token = "wrong" })
	<-b.hand.left
	if b.hand.reason != LeaveRefused || !errors.Is(b.hand.err, ErrRefused) || corral.KindOf(b.hand.err) != corral.Unauthenticated {
		t.Errorf("RunWorker() = %v, %v", b.hand.reason, b.hand.err)
	}
	if !strings.Contains(b.hand.err.Error(), "the token is not that of tag") {
		t.Errorf("error %q does not have the gate's sentence", b.hand.err)
	}
}
